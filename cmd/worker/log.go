package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// newLogger writes to w. c is checked.
func newLogger(c logConfig, w io.Writer) *zap.Logger {
	level, _ := zapcore.ParseLevel(c.level) // it knows each of addLog's words
	encoding := zap.NewProductionEncoderConfig()
	encoding.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	encoding.EncodeDuration = zapcore.StringDurationEncoder
	encoder := zapcore.NewJSONEncoder(encoding)
	if c.format == "text" {
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	core := zapcore.NewCore(encoder, zapcore.Lock(zapcore.AddSync(w)), level)
	if c.format == "text" {
		core = filledCore{core}
	}
	return zap.New(core)
}

// filledCore leaves out texts that are empty, such as the reason of a success: to a person they say that something is missing. In
// JSON they stay, where each kind of line has the same fields.
type filledCore struct{ zapcore.Core }

func (c filledCore) With(fields []zapcore.Field) zapcore.Core {
	return filledCore{c.Core.With(filled(fields))}
}

func (c filledCore) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if c.Enabled(e.Level) {
		return ce.AddCore(e, c)
	}
	return ce
}

func (c filledCore) Write(e zapcore.Entry, fields []zapcore.Field) error {
	return c.Core.Write(e, filled(fields))
}

func filled(fields []zapcore.Field) []zapcore.Field {
	var out []zapcore.Field
	for _, f := range fields {
		if f.Type != zapcore.StringType || f.String != "" {
			out = append(out, f)
		}
	}
	return out
}
