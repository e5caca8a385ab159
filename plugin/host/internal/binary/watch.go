package binary

import (
	"os"
	"time"
)

// Watch notices changes of the file at one path. Only one goroutine may use it.
type Watch struct {
	Path string
	// known describes the file that the caller last dealt with.
	known os.FileInfo
	// seen describes the file at the last look, and since is when it first looked like
	// that. seen is nil if the file was the known one, or missing.
	seen    os.FileInfo
	since   time.Time
	missing bool
}

// NewWatch watches the path for anything but the known file; nil if none is known.
func NewWatch(path string, known os.FileInfo) *Watch {
	return &Watch{Path: path, known: known}
}

// Changed looks at the path. It reports whether the file differs from the known one,
// and has stayed the same for so long that probably nobody is still writing it. A
// missing file is no change, since it may be about to appear, but it is an error after
// that time.
func (w *Watch) Changed(now time.Time, stable time.Duration) (bool, error) {
	found, err := os.Stat(w.Path)
	if err != nil {
		if !w.missing {
			w.missing, w.seen, w.since = true, nil, now
		}
		if now.Sub(w.since) < stable {
			err = nil
		}
		return false, err
	}
	w.missing = false
	if Unchanged(found, w.known) {
		w.seen = nil
		return false, nil
	}
	if !Unchanged(found, w.seen) {
		w.seen, w.since = found, now
	}
	return now.Sub(w.since) >= stable, nil
}

// Know records that the caller has dealt with the file that info describes.
func (w *Watch) Know(info os.FileInfo) { w.known = info }

// Seen describes the changed file that the last look found; nil for none.
func (w *Watch) Seen() os.FileInfo { return w.seen }
