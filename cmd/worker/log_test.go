package main

import (
	"bytes"
	"strings"
	"testing"

	"go.uber.org/zap"
)

// TestLogger_Empty: what a job's end does not have is not printed to people, and keeps its place for programs.
func TestLogger_Empty(t *testing.T) {
	for format, want := range map[string]bool{"text": false, "json": true} {
		var out bytes.Buffer
		log := newLogger(logConfig{level: "info", format: format}, &out).With(zap.String("job", ""), zap.String("worker", "w1"))
		log.Debug("not at this level")
		log.Info("job done", zap.String("reason", ""), zap.Int("slots", 0), zap.String("outcome", "succeeded"))
		text := out.String()
		for _, field := range []string{"reason", "job\":"} {
			if got := strings.Contains(text, field); got != want {
				t.Errorf("%s: %q has the empty field %s: %t, want %t", format, text, field, got, want)
			}
		}
		if strings.Count(text, "\n") != 1 || !strings.Contains(text, "w1") || !strings.Contains(text, "slots") || !strings.Contains(text, "succeeded") {
			t.Errorf("%s: got %q, want one line with all other fields", format, text)
		}
	}
}
