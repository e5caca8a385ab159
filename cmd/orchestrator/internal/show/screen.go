// Package show prints for people: aligned tables, ages, colors, and progress on one
// line of a terminal. Text that others wrote cannot steer the terminal.
package show

import (
	"cmp"
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is a place to print to.
type Screen struct {
	io.Writer
	// Terminal reports whether a person may be looking.
	Terminal bool
	// Color turns styles on.
	Color bool
	// Columns is the width of a terminal that does not know it; 0 for the usual one.
	Columns int
}

// Colors says when to use styles.
type Colors string

// The choices of Colors.
const (
	Auto   Colors = "auto"
	Always Colors = "always"
	Never  Colors = "never"
)

// Check returns an error for any other choice.
func (c Colors) Check() error {
	switch c {
	case Auto, Always, Never:
		return nil
	}
	return errors.New("--color is auto, always or never")
}

// NewScreen returns the screen behind a writer. With Auto, a terminal has styles unless
// the environment says otherwise with NO_COLOR or TERM=dumb.
func NewScreen(w io.Writer, colors Colors, getenv func(string) string) Screen {
	s := Screen{Writer: w, Terminal: IsTerminal(w)}
	if columns, err := strconv.Atoi(getenv("COLUMNS")); err == nil && columns > 0 {
		s.Columns = columns
	}
	switch colors {
	case Always:
		s.Color = true
	case Never:
	default:
		s.Color = s.Terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	}
	return s
}

// IsTerminal reports whether the writer is a terminal.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// usualWidth is the width of a screen of unknown width.
const usualWidth = 80

// Width is how many columns the screen has, according to the terminal, else to COLUMNS
// in the environment, else 80.
func (s Screen) Width() int {
	if file, ok := s.Writer.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return cmp.Or(s.Columns, usualWidth)
}

// Print writes a text, which must be clean. It ignores errors: progress and remarks
// are not worth failing for.
func (s Screen) Print(text string) { _, _ = io.WriteString(s, text) }
