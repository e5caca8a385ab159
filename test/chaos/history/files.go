package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
)

// The names of the files in the directory of a run.
const (
	RunFile       = "run.json"
	CallsFile     = "clients.jsonl"
	FaultsFile    = "faults.jsonl"
	EffectsDir    = "effects"
	WitnessFile   = "witness.jsonl"
	FinalFile     = "final.jsonl"
	ProcessesFile = "processes.jsonl"
	LeaksFile     = "leaks.json"
	TimingsFile   = "timings.json"
)

// Lines appends lines to a file. It may be called from many goroutines.
type Lines[T any] struct {
	mu   sync.Mutex
	file *os.File
	to   *bufio.Writer
}

// Create makes the file, and the directories above it. The file must not exist.
func Create[T any](path string) (*Lines[T], error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return &Lines[T]{file: file, to: bufio.NewWriterSize(file, 1<<16)}, nil
}

// Append writes a line, which may stay in memory until Flush or Close.
func (l *Lines[T]) Append(line T) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.to.Write(append(text, '\n'))
	return err
}

// Flush writes what is in memory to the file.
func (l *Lines[T]) Flush() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to.Flush()
}

// Close flushes, and closes the file.
func (l *Lines[T]) Close() error { return errors.Join(l.Flush(), l.file.Close()) }

// Write writes a file that is one value: [Run], [Leaks] or [Timings].
func Write(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read reads a file that Write has written.
func Read[T any](path string) (value T, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return value, err
	}
	if err := strictly(text, &value); err != nil {
		return value, fmt.Errorf("%s: %w", path, err)
	}
	return value, nil
}

// EachLine reads a file of lines, from the first to the last, with their numbers from 1.
func EachLine[T any](path string, each func(number int, line T) error) error {
	return eachLine(path, false, each)
}

// EachEffect reads the files in a directory of effects, in the order of their names. A last
// line without an end was written by a process that was killed meanwhile: it is left out.
func EachEffect(dir string, each func(file string, number int, line Effect) error) error {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, file := range files {
		err := eachLine(file, true, func(number int, line Effect) error { return each(filepath.Base(file), number, line) })
		if err != nil {
			return err
		}
	}
	return nil
}

func eachLine[T any](path string, torn bool, each func(number int, line T) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, 1<<16)
	for number := 1; ; number++ {
		text, err := lines.ReadBytes('\n')
		switch {
		case err == io.EOF && (len(text) == 0 || torn):
			return nil
		case err == io.EOF:
			return fmt.Errorf("%s:%d: the line has no end", path, number)
		case err != nil:
			return err
		}
		var line T
		if err := strictly(text, &line); err != nil {
			return fmt.Errorf("%s:%d: %w", path, number, err)
		}
		if err := each(number, line); err != nil {
			return err
		}
	}
}

// strictly refuses members that nobody knows: a member that is misspelled would be a check
// that never finds anything.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
