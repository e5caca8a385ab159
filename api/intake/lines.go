package intake

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// Line is one line of NDJSON that is not blank.
type Line struct {
	// Text is the line without its end; empty if it is TooLong.
	Text []byte
	// Number counts all lines from 1.
	Number  int
	TooLong bool
}

// byteOrderMark is at the beginning of UTF-8 that some programs write. RFC 8259 allows
// a reader of JSON to skip it.
var byteOrderMark = []byte("\ufeff")

// lineEnd is the most bytes that end a line: "\r\n".
const lineEnd = 2

// lineOf makes a line of a text that includes its line end. The text may be cut off;
// length is the length of the whole line.
func lineOf(text []byte, length, number, most int) (line Line, blank bool) {
	cut := len(text) < length
	if number == 1 {
		whole := len(text)
		text = bytes.TrimPrefix(text, byteOrderMark)
		length -= whole - len(text)
	}
	text = bytes.TrimRight(text, " \t\r\n")
	if len(text) > most || length > most+lineEnd {
		return Line{Number: number, TooLong: true}, len(text) == 0 && !cut
	}
	return Line{Text: text, Number: number}, len(text) == 0
}

// Lines are the lines of a whole body.
type Lines struct {
	rest   []byte
	number int
	most   int
}

// NewLines returns the lines of a body, each of up to most bytes.
func NewLines(body []byte, most int64) *Lines { return &Lines{rest: body, most: int(most)} }

// Next returns the next line; false after the last one.
func (l *Lines) Next() (Line, bool) {
	for len(l.rest) > 0 {
		text := l.rest
		if end := bytes.IndexByte(text, '\n'); end >= 0 {
			text = text[:end+1]
		}
		l.rest = l.rest[len(text):]
		l.number++
		if line, blank := lineOf(text, len(text), l.number, l.most); !blank {
			return line, true
		}
	}
	return Line{}, false
}

// readAtOnce is how much of a body is read at a time.
const readAtOnce = 64 << 10

// lineReader reads lines as they arrive.
type lineReader struct {
	input  *bufio.Reader
	most   int
	number int
	text   []byte
	// share is charged for the text of long lines.
	share *Share
}

func newLineReader(body io.Reader, most int64, share *Share) *lineReader {
	return &lineReader{input: bufio.NewReaderSize(body, readAtOnce), most: int(most), share: share}
}

// next returns a line whose text is valid until the next call. It returns io.EOF
// after the last line, and another error, which is an answer, if the body cannot
// be read.
func (l *lineReader) next() (Line, error) {
	for {
		text, length, err := l.read()
		if err != nil && !errors.Is(err, io.EOF) {
			// A cut-off line may look complete, such as half a number.
			return Line{}, unread(err)
		}
		l.number++
		if line, blank := lineOf(text, length, l.number, l.most); !blank {
			return line, nil
		}
		if err != nil {
			return Line{}, io.EOF
		}
	}
}

// read returns the length of the next line, and as much of its text as can be
// accepted.
func (l *lineReader) read() (text []byte, length int, err error) {
	l.text = l.text[:0]
	for {
		piece, err := l.input.ReadSlice('\n')
		length += len(piece)
		if length == len(piece) && !errors.Is(err, bufio.ErrBufferFull) {
			return piece, length, err
		}
		kept := min(len(piece), l.most+lineEnd-len(l.text))
		room := cap(l.text)
		l.text = slices.Grow(l.text, kept)
		if err := l.share.Hold(cap(l.text) - room); err != nil {
			return nil, 0, err
		}
		l.text = append(l.text, piece[:kept]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.text, length, err
		}
	}
}
