package main

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"slipway/job"
)

// brokenList is a queue whose list fails.
type brokenList struct{ job.Client }

func (brokenList) List(context.Context, job.ListQuery) iter.Seq2[job.Status, error] {
	return func(yield func(job.Status, error) bool) { yield(job.Status{}, errors.New("boom")) }
}

func (brokenList) DeadLetters(context.Context) iter.Seq2[job.DeadLetter, error] {
	return func(yield func(job.DeadLetter, error) bool) { yield(job.DeadLetter{}, errors.New("boom")) }
}

// TestList_Limit: a list that stops at its limit says so, and one that ends there does not.
func TestList_Limit(t *testing.T) {
	b := setup(t)
	b.withQueue()
	for range 3 {
		b.must("create", b.file("image: x\nsteps: [{run: 'true'}]\n"))
	}
	for limit, more := range map[string]bool{"2": true, "3": false, "4": false} {
		for _, output := range []string{"text", "json"} {
			out, errOut, code := b.run("list", "--limit", limit, "-o", output)
			want := map[string]int{"2": 2, "3": 3, "4": 3}[limit]
			if output == "text" {
				want++ // the header
			}
			if code != 0 || strings.Count(out, "\n") != want || strings.Contains(errOut, "there are more than these "+limit) != more {
				t.Errorf("%s, %s: code %d, %d lines, stderr %q, want 0, %d, and a word on more: %t", limit, output, code, strings.Count(out, "\n"), errOut, want, more)
			}
		}
	}
}

// TestLists_Fail: an error has no header above it, and no jobs have one.
func TestLists_Fail(t *testing.T) {
	b := setup(t)
	b.withQueue()
	for _, args := range [][]string{{"list"}, {"dead", "list"}} {
		if out, _, code := b.run(args...); code != 0 || !strings.HasPrefix(out, "ID ") {
			t.Errorf("%v of none: code %d, stdout %q, want 0 and a header", args, code, out)
		}
	}
	b.wrapQueue(func(c job.Client) job.Client { return brokenList{c} })
	for _, args := range [][]string{{"list"}, {"dead", "list"}} {
		if out, errOut, code := b.run(args...); code == 0 || out != "" || !strings.Contains(errOut, "boom") {
			t.Errorf("%v: code %d, stdout %q, stderr %q, want an error and nothing on stdout", args, code, out, errOut)
		}
	}
}

// TestStatus_Unserved: a job that waits where no worker looks is told so.
func TestStatus_Unserved(t *testing.T) {
	b := setup(t)
	b.withQueue()
	id := strings.TrimSpace(b.must("create", "--queue", "tpyo", b.file("image: x\nsteps: [{run: 'true'}]\n")))
	if out, errOut, code := b.run("status", id); code != 0 || !strings.Contains(out, "queued") || !strings.Contains(errOut, "no worker is alive") {
		t.Errorf("status: code %d, stdout %q, stderr %q, want 0, and that no worker is alive", code, out, errOut)
	}
	if _, errOut, _ := b.run("status", "-o", "json", id); errOut != "" {
		t.Errorf("status in JSON: stderr %q, want nothing", errOut)
	}
	b.must("cancel", id)
	b.run("result", "--wait", id)
	if _, errOut, _ := b.run("status", id); errOut != "" {
		t.Errorf("status of a job that has ended: stderr %q, want nothing", errOut)
	}
}

// TestResult_Titles: a step without a name is known by what it does.
func TestResult_Titles(t *testing.T) {
	b := setup(t)
	b.withWorker(b.withQueue())
	id := b.runJob("image: x\nsteps:\n  - run: echo one\n  - {name: named, run: echo two}\n  - {run: echo three, if: failure}\n")
	out, _, _ := b.run("result", id)
	for _, want := range []string{"step 1: echo one succeeded", "step 2: named succeeded", "step 3: echo three skipped"} {
		if !strings.Contains(out, want) {
			t.Errorf("got %s, want %q", out, want)
		}
	}
}
