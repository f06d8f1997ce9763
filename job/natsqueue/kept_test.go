package natsqueue

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"slipway/job"
)

func keptResult(size int) *kept {
	return &kept{
		Version: keptVersion, ID: job.NewID(), Generation: 1, Attempt: 2, Fence: 3, Owner: "w1", Boot: "B", KeptAt: time.Unix(1, 0).UTC(),
		Result: &job.Result{Outcome: job.Succeeded, Message: strings.Repeat("x", size)},
	}
}

// What is kept is read again, is counted, and is gone when it is removed.
func TestOutboxKeeps(t *testing.T) {
	t.Parallel()
	o, err := openOutbox(t.TempDir(), "p")
	if err != nil {
		t.Fatal(err)
	}
	k := keptResult(10)
	if err := o.save(k); err != nil {
		t.Fatal(err)
	}
	names, err := o.names()
	if err != nil || len(names) != 1 {
		t.Fatalf("got %v, %v; want one file", names, err)
	}
	got, err := o.load(names[0])
	if err != nil || got.ID != k.ID || got.Attempt != 2 || !got.KeptAt.Equal(k.KeptAt) || got.Result.Message != k.Result.Message {
		t.Errorf("got %+v, %v; want %+v", got, err, k)
	}
	rec := &record{State: job.StateRunning, Generation: 1, Fence: 3, Owner: "w1", Boot: "B"}
	if o.of(k.ID, rec) == nil {
		t.Error("a claim does not find its result")
	}
	for name, change := range map[string]func(*record){
		"another process": func(r *record) { r.Boot = "C" }, "another worker": func(r *record) { r.Owner = "w2" },
		"the next claim": func(r *record) { r.Fence++ }, "the next generation": func(r *record) { r.Generation++ },
	} {
		other := *rec
		change(&other)
		if o.of(k.ID, &other) != nil {
			t.Errorf("%s finds a result that is not its own", name)
		}
	}
	if u := o.stats(); u.Waiting != 1 || u.Bytes == 0 {
		t.Errorf("got %+v, want one result that waits", u)
	}
	for range 2 { // two replays may be done with one at the same time
		if err := o.remove(k, func(u *OutboxUse) { u.Committed++ }); err != nil {
			t.Error(err)
		}
	}
	if u := o.stats(); u != (OutboxUse{Committed: 1}) {
		t.Errorf("got %+v, want one committed, and none waiting", u)
	}
	if info, err := os.Stat(o.dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v; want a folder for this user alone", info.Mode(), err)
	}
}

// An outbox does not fill the disk, and what it refuses leaves nothing there.
func TestOutboxIsBounded(t *testing.T) {
	t.Parallel()
	o, err := openOutbox(t.TempDir(), "p")
	if err != nil {
		t.Fatal(err)
	}
	for range maxOutbox / (8 << 20) {
		err = errors.Join(err, o.save(keptResult(8<<20-4<<10)))
	}
	if err != nil {
		t.Fatalf("before the bound: %v", err)
	}
	if err := o.save(keptResult(8 << 20)); err == nil || !strings.Contains(err.Error(), "takes 67108864 bytes") {
		t.Errorf("got %v, want a refusal that names the bound", err)
	}
	if u := o.stats(); u.Lost != 1 || u.Bytes > maxOutbox {
		t.Errorf("got %+v, want one lost, and no more bytes than the bound", u)
	}
	if all, _ := os.ReadDir(o.dir); len(all) != maxOutbox/(8<<20) {
		t.Errorf("got %d files, want those of the kept results alone", len(all))
	}
}

// A file that can't be read is put aside for a person, said once, and does not come again.
func TestOutboxPutsAside(t *testing.T) {
	t.Parallel()
	o, err := openOutbox(t.TempDir(), "p")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(o.dir, "torn.json")
	if err := os.WriteFile(path, []byte(`{"version":1,`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := o.load("torn.json"); !errors.Is(err, job.ErrUnreadable) {
		t.Errorf("got %v, want ErrUnreadable", err)
	}
	if _, err := os.Stat(path + unreadableSuffix); err != nil {
		t.Errorf("it is not put aside: %v", err)
	}
	if names, err := o.names(); err != nil || len(names) != 0 || o.stats().Lost != 1 {
		t.Errorf("got %v, %v and %+v; want nothing that waits, and one lost", names, err, o.stats())
	}
}

// Whatever lies in a file, it is a whole result or an error.
func FuzzParseKept(f *testing.F) {
	f.Add([]byte(`{"version":1,"job_id":"01JF8ZQ3K4M5N6P7Q8R9S0T1V2","generation":1,"attempt":1,"fence":1,"owner":"w","boot":"B","result":{"outcome":"succeeded"}}`))
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := parseKept(data)
		if err != nil {
			if !errors.Is(err, job.ErrUnreadable) {
				t.Errorf("got %v, want ErrUnreadable", err)
			}
			return
		}
		if checkID(k.ID) != nil || k.Fence == 0 || k.Result == nil || strings.ContainsAny(k.name(), "/\\") {
			t.Errorf("got %+v, want a result that says whose it is", k)
		}
	})
}
