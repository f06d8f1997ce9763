package natsqueue

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"slipway/internal/atomicfile"
	"slipway/job"
)

// maxOutbox bounds the bytes of an outbox. It has room for hundreds of results, and a worker does not fill its disk with what
// a queue that is away for long can't take.
const maxOutbox = 64 << 20

// OutboxUse is what an outbox has, and what became of what it had.
type OutboxUse struct {
	// Waiting is how many results are kept now, and Bytes how many bytes their files have.
	Waiting int
	Bytes   int64
	// Committed counts the results that were committed from the outbox since the start.
	Committed uint64
	// Late counts those that were dropped since another attempt owns or decided the job.
	Late uint64
	// Lost counts those that could not be kept, or not be read again.
	Lost uint64
}

// kept is a finished result that the queue did not take, as it lies on disk. The names are those of the record's fields.
type kept struct {
	Version    int       `json:"version"`
	ID         job.ID    `json:"job_id"`
	Generation int       `json:"generation"`
	Attempt    int       `json:"attempt"`
	Fence      uint64    `json:"fence"`
	Owner      string    `json:"owner"`
	Boot       string    `json:"boot"`
	KeptAt     time.Time `json:"kept_at"`
	// Result is what Commit was called with.
	Result *job.Result `json:"result"`
}

const keptVersion = 1

// of reports whether k is the result of the claim that rec stands for, or of the one that decided rec.
func (k *kept) of(rec *record) bool {
	return rec != nil && rec.Generation == k.Generation && rec.Fence == k.Fence && rec.Owner == k.Owner && rec.Boot == k.Boot
}

func (k *kept) name() string {
	return fmt.Sprintf("%s-%d-%d%s", k.ID, k.Generation, k.Fence, keptSuffix)
}

// The files of an outbox. One that can't be read stays for a person, under a name that is no result's.
const (
	keptSuffix       = ".json"
	unreadableSuffix = ".unreadable"
)

// outbox keeps finished results on disk, each in a file of its own. A nil outbox keeps nothing. It is safe for concurrent use.
type outbox struct {
	dir   string
	saved chan struct{} // holds one wish that the replays look

	mu  sync.Mutex
	use OutboxUse
}

// openOutbox makes the folder of one queue below dir. Without a dir there is none.
func openOutbox(dir, prefix string) (*outbox, error) {
	if dir == "" {
		return nil, nil
	}
	o := &outbox{dir: filepath.Join(dir, "outbox", prefix), saved: make(chan struct{}, 1)}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return nil, fmt.Errorf("setting StateDir: %w", err)
	}
	probe, err := os.CreateTemp(o.dir, ".probe-")
	if err != nil {
		return nil, fmt.Errorf("setting StateDir: %w", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, fmt.Errorf("setting StateDir: %w", err)
	}
	_, err = o.names()
	return o, err
}

// save keeps k. Once it returns nil, k outlives the process and the system.
func (o *outbox) save(k *kept) error {
	err := o.write(k)
	if err != nil {
		o.count(func(u *OutboxUse) { u.Lost++ })
		return fmt.Errorf("keep the result of job %s: %w", k.ID, err)
	}
	select {
	case o.saved <- struct{}{}:
	default:
	}
	return nil
}

func (o *outbox) write(k *kept) error {
	data, err := json.Marshal(k)
	if err != nil {
		return err
	}
	if _, err := o.names(); err != nil {
		return err
	}
	if u := o.stats(); u.Bytes+int64(len(data)) > maxOutbox {
		return fmt.Errorf("the outbox %s has %d results of %d bytes, and takes %d bytes", o.dir, u.Waiting, u.Bytes, maxOutbox)
	}
	return atomicfile.Write(filepath.Join(o.dir, k.name()), data)
}

// names lists the files of the results, and counts them.
func (o *outbox) names() ([]string, error) {
	if o == nil {
		return nil, nil
	}
	entries, err := os.ReadDir(o.dir)
	if err != nil {
		return nil, fmt.Errorf("look into the outbox: %w", err)
	}
	var names []string
	var bytes int64
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), keptSuffix) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		names = append(names, e.Name())
		if info, err := e.Info(); err == nil { // else it was removed just now
			bytes += info.Size()
		}
	}
	o.count(func(u *OutboxUse) { u.Waiting, u.Bytes = len(names), bytes })
	return names, nil
}

// load reads one file. Nil without an error: it is gone, or was put aside since it can't be read.
func (o *outbox) load(name string) (*kept, error) {
	path := filepath.Join(o.dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read a kept result: %w", err)
	}
	k, err := parseKept(data)
	if err == nil {
		return k, nil
	}
	o.count(func(u *OutboxUse) { u.Lost++ })
	return nil, errors.Join(fmt.Errorf("read a kept result, which is put aside as %s: %w", path+unreadableSuffix, err), os.Rename(path, path+unreadableSuffix))
}

// parseKept reads a file's content.
func parseKept(data []byte) (*kept, error) {
	k := new(kept)
	if err := json.Unmarshal(data, k); err != nil {
		return nil, fmt.Errorf("%w: %w", job.ErrUnreadable, err)
	}
	switch {
	case k.Version != keptVersion:
		return nil, fmt.Errorf("%w: version %d, and this program knows %d", job.ErrUnreadable, k.Version, keptVersion)
	case checkID(k.ID) != nil || k.Fence == 0 || k.Generation < 1 || k.Owner == "" || k.Boot == "":
		return nil, fmt.Errorf("%w: it does not say whose result it is", job.ErrUnreadable)
	case k.Result == nil || !k.Result.Outcome.Valid():
		return nil, fmt.Errorf("%w: it has no result", job.ErrUnreadable)
	}
	return k, nil
}

// of returns the result that is kept of the claim that rec stands for, nil if there is none.
func (o *outbox) of(id job.ID, rec *record) *kept {
	if o == nil {
		return nil
	}
	want := kept{ID: id, Generation: rec.Generation, Fence: rec.Fence}
	k, err := o.load(want.name())
	if err != nil || k == nil || !k.of(rec) {
		return nil
	}
	return k
}

// remove forgets a result. as counts why.
func (o *outbox) remove(k *kept, as func(*OutboxUse)) error {
	if o == nil {
		return nil
	}
	err := os.Remove(filepath.Join(o.dir, k.name()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another replay was faster, and counted it
	}
	if err == nil {
		o.count(as)
	}
	_, look := o.names()
	return errors.Join(err, look)
}

func (o *outbox) count(change func(*OutboxUse)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	change(&o.use)
}

func (o *outbox) stats() OutboxUse {
	if o == nil {
		return OutboxUse{}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.use
}
