package show

import (
	"sync"
	"time"
)

// redrawEvery is the shortest time between two drawings of a line.
const redrawEvery = 100 * time.Millisecond

// Line is the last line of a terminal, which is drawn again and again. On any other
// screen nothing is drawn. It may be used concurrently.
type Line struct {
	screen Screen

	mu    sync.Mutex
	text  string
	drawn time.Time
	shown bool
}

// NewLine returns an empty line.
func NewLine(s Screen) *Line { return &Line{screen: s} }

// eraseLine goes to the start of the line and erases it.
const eraseLine = "\r\x1b[K"

// Set replaces the text, which must be clean. It draws the line unless that was done a
// moment ago.
func (l *Line) Set(text string) {
	if !l.screen.Terminal {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = text
	if time.Since(l.drawn) >= redrawEvery {
		l.draw()
	}
}

// Width is how many columns a text may have. It is one less than the screen's: a full
// line would make some terminals scroll.
func (l *Line) Width() int { return l.screen.Width() - 1 }

func (l *Line) draw() {
	l.screen.Print(eraseLine + Shorten(l.text, l.Width()))
	l.drawn, l.shown = time.Now(), true
}

// Above prints a text of whole lines, which must be clean, above the line.
func (l *Line) Above(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.shown {
		l.screen.Print(text)
		return
	}
	l.screen.Print(eraseLine + text)
	l.draw()
}

// Clear erases the line.
func (l *Line) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shown {
		l.screen.Print(eraseLine)
	}
	l.shown, l.drawn = false, time.Time{}
}
