package display

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"slipway/cmd/internal/sanitize"
	"slipway/job"
)

// outputs are what the running step prints, on its way to the screen.
type outputs struct {
	opts    Options
	streams map[string]*stream
}

// stream is one of a step's outputs.
type stream struct {
	clean sanitize.Filter
	mid   bool // the last line that was written has no line end yet
	at    time.Time
}

func (o *outputs) print(e job.Event) {
	s := o.streams[e.Stream]
	if s == nil {
		s = &stream{}
		o.streams[e.Stream] = s
	}
	if o.opts.Quote { // both streams go to one screen
		o.endLines(func(name string) bool { return name != e.Stream })
	}
	s.at = e.Time
	text := e.Data
	if !o.opts.Raw {
		text = s.clean.Clean(text)
	}
	o.write(o.writer(e.Stream), s, text)
}

func (o *outputs) write(w io.Writer, s *stream, text []byte) {
	if len(text) == 0 {
		return
	}
	if !o.opts.Quote && !o.opts.Timestamps {
		_, _ = w.Write(text) // if the reader has gone, SIGPIPE ends the program
		s.mid = text[len(text)-1] != '\n'
		return
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		if !s.mid {
			out.WriteString(o.lineStart(s))
		}
		out.Write(line)
		s.mid = line[len(line)-1] != '\n'
	}
	_, _ = w.Write(out.Bytes())
}

// lineStart is what stands before a line of output.
func (o *outputs) lineStart(s *stream) string {
	start := ""
	if o.opts.Quote {
		start = o.opts.paint(dim, "  │ ")
	}
	if !o.opts.Timestamps {
		return start
	}
	const layout = "2006-01-02T15:04:05.000Z"
	if s.at.IsZero() {
		return start + fmt.Sprintf("%-*s ", len(layout), "-")
	}
	return start + s.at.UTC().Format(layout) + " "
}

func (o *outputs) writer(stream string) io.Writer {
	if stream == "stderr" {
		return o.opts.Err
	}
	return o.opts.Out
}

// endLines ends the open line of each stream that which chooses.
func (o *outputs) endLines(which func(name string) bool) {
	for name, s := range o.streams {
		if s.mid && which(name) {
			fmt.Fprintln(o.writer(name))
			s.mid = false
		}
	}
}

// flush prints what the filters still hold.
func (o *outputs) flush() {
	for name, s := range o.streams {
		o.write(o.writer(name), s, s.clean.Flush())
	}
}
