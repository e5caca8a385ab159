// Package show prints for people: aligned tables, ages, colours, and progress
// on one line of a terminal. What others wrote cannot steer the terminal.
package show

import (
	"cmp"
	"errors"
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen is where something is printed to.
type Screen struct {
	io.Writer
	// Terminal says that a person may be looking.
	Terminal bool
	// Color says that styles are shown.
	Color bool
	// Columns is how wide a terminal is that does not tell; 0 for the usual.
	Columns int
}

// Colors says when styles are shown.
type Colors string

// The choices of Colors.
const (
	Auto   Colors = "auto"
	Always Colors = "always"
	Never  Colors = "never"
)

// Check returns an error for anything but these choices.
func (c Colors) Check() error {
	switch c {
	case Auto, Always, Never:
		return nil
	}
	return errors.New("--color is auto, always or never")
}

// NewScreen finds out what the writer is. With Auto, styles are shown on a
// terminal, unless the environment says otherwise with NO_COLOR or TERM=dumb.
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

// usualWidth is that of a terminal which does not tell.
const usualWidth = 80

// Width is how many columns the screen has: what the terminal says, or else
// COLUMNS in the environment, or else 80.
func (s Screen) Width() int {
	if file, ok := s.Writer.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return cmp.Or(s.Columns, usualWidth)
}
