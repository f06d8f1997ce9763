package testimage

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	labelKey  = "slipway.image.key"
	labelFrom = "slipway.image.from"
	// format is part of every key: raise it when the way in which images are made changes.
	format = "1"
)

// recipe says how an image is made. Making a recipe is cheap; its files may not be.
type recipe struct {
	// inputs name all that the image is made of.
	inputs []string
	// from says so for people.
	from   string
	config v1.Config
	files  func(ctx context.Context) (*tree, error)
}

// digest is the key of the image that r makes.
func (r recipe) digest() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%q\n%+v\n", format, r.inputs, r.config)) // fmt sorts maps
	return hex.EncodeToString(sum[:])
}

// build makes the image of r and loads it into the engine as ref.
func build(ctx context.Context, ref, arch string, r recipe) error {
	files, err := r.files(ctx)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(ref)
	if err != nil {
		return err
	}
	img, err := files.image(arch, r)
	if err != nil {
		return fmt.Errorf("make image: %w", err)
	}
	if err := load(ctx, func(w io.Writer) error { return tarball.Write(tag, img, w) }); err != nil {
		return fmt.Errorf("load image: %w", err)
	}
	return nil
}

func (t *tree) image(arch string, r recipe) (v1.Image, error) {
	// Not compressed: it only goes through a pipe to the engine.
	layer, err := tarball.LayerFromOpener(t.open, tarball.WithCompressionLevel(gzip.NoCompression))
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	file = file.DeepCopy()
	file.Architecture, file.OS = arch, "linux"
	file.Created = v1.Time{Time: epoch()}
	file.Config = r.config
	file.Config.Labels = map[string]string{labelKey: r.digest(), labelFrom: r.from}
	return mutate.ConfigFile(img, file)
}

// epoch is the time of every file: the same input makes the same image, to the byte.
func epoch() time.Time { return time.Unix(0, 0).UTC() }

// open streams the layer: the tree's entries in the order of their paths.
func (t *tree) open() (io.ReadCloser, error) {
	r, w := io.Pipe()
	go func() { // ends when the reader reads to the end, or closes
		_ = w.CloseWithError(t.write(w))
	}()
	return r, nil
}

func (t *tree) write(w io.Writer) error {
	tw := tar.NewWriter(w)
	for _, e := range t.sorted() {
		if err := e.write(tw); err != nil {
			return fmt.Errorf("write %s: %w", e.path, err)
		}
	}
	return tw.Close()
}

func (e entry) write(tw *tar.Writer) error {
	h := &tar.Header{
		Name: e.path, Mode: e.mode, Uid: e.uid, Gid: e.uid, Linkname: e.link,
		Typeflag: e.kind, ModTime: epoch(), Format: tar.FormatPAX, Size: int64(len(e.data)),
	}
	if e.source == "" {
		if err := tw.WriteHeader(h); err != nil {
			return err
		}
		_, err := tw.Write(e.data)
		return err
	}
	f, err := os.Open(e.source)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	h.Size = info.Size()
	if err := tw.WriteHeader(h); err != nil {
		return err
	}
	_, err = io.Copy(tw, f)
	return err
}
