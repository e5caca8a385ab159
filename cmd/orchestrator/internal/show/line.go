package show

import (
	"sync"
	"time"
)

// redrawEvery bounds how often a line is drawn anew.
const redrawEvery = 100 * time.Millisecond

// Line is the last line of a terminal, which is written over and over. On any
// other screen nothing is drawn. It may be used concurrently.
type Line struct {
	screen Screen

	mu    sync.Mutex
	text  string
	drawn time.Time
	shown bool
}

// NewLine returns a line on which nothing stands.
func NewLine(s Screen) *Line { return &Line{screen: s} }

// eraseLine goes to the start of the line and erases it.
const eraseLine = "\r\x1b[K"

// Set puts a text, which must be clean, in place of the one before. It is
// drawn unless one was drawn a moment ago.
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

// Width is how many columns a text may have. It is one short of the screen: a
// full line would make some terminals scroll.
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
