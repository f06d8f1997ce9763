// Package deploy tests what lies in deploy/: every metric, label and label value
// that the dashboard and the alert rules name must be in a real scrape of a
// Recorder, and promtool must accept the rules and pass their unit tests.
//
//	deploy/grafana/*.json, deploy/prometheus/*.rules.yml
//	      │ expressions                     Recorder ── every method ──► HTTP scrape
//	      ▼                                                                 │
//	   uses() ──► metrics, labels, values ──────────── must be in ──────────┘
//
// Expressions are read by the small tokenizer below. Prometheus' own parser would
// bring the whole of Prometheus into go.mod; promtool, which has that parser, checks
// the syntax of the rules anyway.
package deploy

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// use is one selector of an expression: a metric and its matchers.
type use struct {
	metric   string
	matchers []matcher
}

type matcher struct{ label, op, value string }

// uses returns the selectors of a PromQL expression, and the labels that it
// groups or joins by.
func uses(expr string) (selectors []use, grouped []string, err error) {
	toks, err := tokenize(expr)
	if err != nil {
		return nil, nil, err
	}
	p := &reader{toks: toks}
	for !p.done() {
		if err := p.next(); err != nil {
			return nil, nil, fmt.Errorf("%w in %q", err, expr)
		}
	}
	return p.selectors, p.grouped, nil
}

type reader struct {
	toks      []token
	pos       int
	selectors []use
	grouped   []string
}

func (p *reader) done() bool { return p.pos >= len(p.toks) }

// peek returns the text of the next token, "" at the end.
func (p *reader) peek() string {
	if p.done() {
		return ""
	}
	return p.toks[p.pos].text
}

// next reads one token, and what belongs to it.
func (p *reader) next() error {
	t := p.toks[p.pos]
	p.pos++
	switch {
	case t.text == "{":
		return fmt.Errorf("a selector without a metric's name")
	case t.text == "[": // a range: nothing in it is a name
		return p.skipTo("]")
	case t.kind != word:
		return nil
	case slices.Contains([]string{"by", "without", "on", "ignoring", "group_left", "group_right"}, t.text):
		if p.peek() != "(" {
			return nil // group_left may stand alone
		}
		return p.labels()
	case slices.Contains([]string{"and", "or", "unless", "bool", "offset", "inf", "nan"}, strings.ToLower(t.text)):
		return nil
	case p.peek() == "(" || p.peek() == "by" || p.peek() == "without":
		return nil // a function or an aggregation
	}
	u := use{metric: t.text}
	if p.peek() == "{" {
		p.pos++
		var err error
		if u.matchers, err = p.matchers(); err != nil {
			return err
		}
	}
	p.selectors = append(p.selectors, u)
	return nil
}

func (p *reader) skipTo(end string) error {
	for !p.done() {
		p.pos++
		if p.toks[p.pos-1].text == end {
			return nil
		}
	}
	return fmt.Errorf("no %q at the end", end)
}

// labels reads a list of labels in parentheses.
func (p *reader) labels() error {
	p.pos++
	for !p.done() {
		t := p.toks[p.pos]
		p.pos++
		switch {
		case t.text == ")":
			return nil
		case t.kind == word:
			p.grouped = append(p.grouped, t.text)
		case t.text != ",":
			return fmt.Errorf("%q in a list of labels", t.text)
		}
	}
	return fmt.Errorf("a list of labels without an end")
}

// matchers reads what stands in braces.
func (p *reader) matchers() ([]matcher, error) {
	var out []matcher
	for !p.done() {
		t := p.toks[p.pos]
		switch {
		case t.text == "}":
			p.pos++
			return out, nil
		case t.text == ",":
			p.pos++
		case t.kind == word && p.pos+2 < len(p.toks) && p.toks[p.pos+2].kind == text:
			out = append(out, matcher{t.text, p.toks[p.pos+1].text, p.toks[p.pos+2].text})
			p.pos += 3
		default:
			return nil, fmt.Errorf("%q is no matcher", t.text)
		}
	}
	return nil, fmt.Errorf("matchers without an end")
}

type kind int

const (
	symbol kind = iota
	word        // a name or a keyword
	text        // a quoted string, without its quotes
	number
)

type token struct {
	kind kind
	text string
}

func tokenize(s string) ([]token, error) {
	var out []token
	for s != "" {
		c := rune(s[0])
		n := 1
		switch {
		case unicode.IsSpace(c):
			s = s[1:]
			continue
		case c == '"' || c == '\'' || c == '`':
			n = stringEnd(s)
			if n < 0 {
				return nil, fmt.Errorf("a string without an end: %s", s)
			}
			out = append(out, token{text, s[1 : n-1]})
			s = s[n:]
			continue
		case nameStart(c) || c == '$': // $ begins a variable of Grafana
			n = span(s, func(c rune) bool { return nameStart(c) || c == '$' || c >= '0' && c <= '9' })
			k := word
			if c == '$' {
				k = number
			}
			out = append(out, token{k, s[:n]})
		case c >= '0' && c <= '9' || c == '.':
			n = span(s, func(c rune) bool { return c == '.' || c == '_' || c >= '0' && c <= '9' || unicode.IsLetter(c) })
			out = append(out, token{number, s[:n]})
		default:
			if len(s) > 1 && slices.Contains([]string{"=~", "!~", "!=", "==", ">=", "<="}, s[:2]) {
				n = 2
			}
			out = append(out, token{symbol, s[:n]})
		}
		s = s[n:]
	}
	return out, nil
}

func nameStart(c rune) bool {
	return c == '_' || c == ':' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func span(s string, in func(rune) bool) int {
	for i, c := range s {
		if !in(c) {
			return i
		}
	}
	return len(s)
}

// stringEnd returns the index behind the closing quote, or -1.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && s[0] != '`':
			i++
		case s[i] == s[0]:
			return i + 1
		}
	}
	return -1
}
