package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"slipway/cmd/internal/exit"
)

// newLogger writes to w.
func newLogger(c logConfig, w io.Writer) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(c.level)
	if err != nil {
		return nil, exit.Usagef("log.level: %q: must be debug, info, warn or error", c.level)
	}
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	var encoder zapcore.Encoder
	switch c.format {
	case "json":
		encoder = zapcore.NewJSONEncoder(encoding)
	case "text":
		encoder = zapcore.NewConsoleEncoder(encoding)
	default:
		return nil, exit.Usagef("log.format: %q: must be json or text", c.format)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)), nil
}
