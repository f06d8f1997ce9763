package job

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Encode writes j as JSON, as it travels on the wire. Equal jobs give equal
// bytes. It does not validate; a job of more than MaxSpecBytes is an error.
func Encode(j *Job) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false) // scripts are full of <, > and &
	if err := enc.Encode(utcCopy(j)); err != nil {
		return nil, fmt.Errorf("encode job: %w", err)
	}
	data := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if len(data) > MaxSpecBytes {
		return nil, fmt.Errorf("encode job: %d bytes, more than the %d (1 MiB) allowed", len(data), MaxSpecBytes)
	}
	return data, nil
}

// utcCopy returns j with its time in UTC, as Decode gives it.
func utcCopy(j *Job) *Job {
	c := *j
	if !c.NotBefore.IsZero() {
		c.NotBefore = c.NotBefore.UTC()
	}
	return &c
}
