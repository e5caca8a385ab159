// Package watch notices that a file is another than before.
package watch

import (
	"os"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
)

// File watches one path. It is for one goroutine.
type File struct {
	path string
	// known is what the file was like when it was last dealt with.
	known os.FileInfo
	// seen is what the last look saw, and since when it looks like that.
	seen  os.FileInfo
	since time.Time
	// missing says that it saw nothing, since then.
	missing bool
}

// New watches the path for anything that differs from what is known; nil for
// nothing that is known.
func New(path string, known os.FileInfo) *File {
	return &File{path: path, known: known}
}

// Changed looks at the file, and reports whether it differs from what is known
// and has been as it is for long enough, so that nobody is likely to be writing
// it still. A file that is missing has not changed: it may be on its way. It is an
// error when it has been missing for as long.
func (f *File) Changed(now time.Time, still time.Duration) (bool, error) {
	found, err := os.Stat(f.path)
	if err != nil {
		if !f.missing {
			f.missing, f.seen, f.since = true, nil, now
		}
		if now.Sub(f.since) < still {
			err = nil
		}
		return false, err
	}
	f.missing = false
	if child.Unchanged(found, f.known) {
		f.seen = nil
		return false, nil
	}
	if !child.Unchanged(found, f.seen) {
		f.seen, f.since = found, now
	}
	return now.Sub(f.since) >= still, nil
}

// Know says that the file, as it looks here, was dealt with.
func (f *File) Know(info os.FileInfo) { f.known = info }

// Seen is what the last look saw that differed from what is known; nil when it
// saw nothing else.
func (f *File) Seen() os.FileInfo { return f.seen }
