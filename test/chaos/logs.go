//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

const (
	// told is how many lines of a log are printed when a run has failed, and toldWidth how
	// many bytes of each.
	told, toldWidth = 25, 300
	// mostLog is how many bytes of an orchestrator's log, of its end, stay with the record.
	mostLog = 256 << 20
)

// tellEnd prints the last lines of the run's log that tell of something odd.
func tellEnd(path string, seed uint64) {
	text, err := os.ReadFile(path)
	if err != nil {
		fmt.Println("note: no log:", err)
		return
	}
	lines := slices.DeleteFunc(bytes.Split(text, []byte("\n")), func(line []byte) bool {
		return !bytes.Contains(line, []byte(" level=WARN ")) && !bytes.Contains(line, []byte(" level=ERROR "))
	})
	fmt.Printf("the run with the seed %d failed; the last warnings and errors of %s:\n", seed, path)
	for _, line := range lines[max(0, len(lines)-told):] {
		fmt.Printf("  %s\n", line[:min(len(line), toldWidth)])
	}
}

// keepLogs packs the orchestrators' logs into the record.
func (r *run) keepLogs() {
	logs, _ := filepath.Glob(filepath.Join(r.scratch, "hosts", "*", "log")) // only a bad pattern is an error
	for _, path := range logs {
		if err := pack(path, filepath.Join(r.dir, "log-"+filepath.Base(filepath.Dir(path))+".gz"), mostLog); err != nil {
			r.log.Warn("a log is not kept", "path", path, "error", err)
		}
	}
}

// pack compresses a file, or as much of its end as is allowed.
func pack(from, to string, most int64) (err error) {
	log, err := os.Open(from)
	if err != nil {
		return err
	}
	defer log.Close()
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if _, err := log.Seek(max(0, size-most), io.SeekStart); err != nil {
		return err
	}
	packed, err := os.OpenFile(to, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644) //nolint:gosec // read by all
	if err != nil {
		return err
	}
	writer := gzip.NewWriter(packed)
	_, err = io.Copy(writer, log)
	return errors.Join(err, writer.Close(), packed.Close())
}
