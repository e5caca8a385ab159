package show

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// leastText is how wide the text beside names is at least. Where there is no
	// room for that it begins on the line below the name.
	leastText = 24
	// usualHang is where such a text is indented to.
	usualHang = 10
)

// inColumns is a name, such as a flag's, and a text beside it.
var inColumns = regexp.MustCompile(`^( +\S.*?  +)\S`)

// Wrap breaks the lines of a help text between words, so that none has more
// columns than given, where that can be. Paragraphs are filled anew; a text
// beside a name stays beside it. Blocks under the title Examples, and lines
// that begin with a tab, are for copying and stay as they are.
func Wrap(text string, columns int) string {
	blocks := strings.Split(text, "\n\n")
	for i, block := range blocks {
		if !strings.HasPrefix(strings.TrimLeft(block, "\n"), "Examples:") {
			blocks[i] = wrapBlock(block, columns)
		}
	}
	return strings.Join(blocks, "\n\n")
}

func wrapBlock(block string, columns int) string {
	lines := strings.Split(block, "\n")
	tooLong := func(line string) bool { return Width(line) > columns && !strings.HasPrefix(line, "\t") }
	if !slices.ContainsFunc(lines, tooLong) {
		return block
	}
	second := 0
	for _, line := range lines {
		if found := inColumns.FindStringSubmatch(line); found != nil {
			second = max(second, len(found[1]))
		}
	}
	var wrapped []string
	for _, line := range joined(lines) {
		if !tooLong(line) {
			wrapped = append(wrapped, line)
			continue
		}
		wrapped = append(wrapped, wrapLine(line, second, columns)...)
	}
	return strings.Join(wrapped, "\n")
}

// joined makes one line of lines that follow each other and are not indented.
func joined(lines []string) []string {
	var paragraphs []string
	prose := false
	for _, line := range lines {
		flush := line != "" && !strings.ContainsAny(line[:1], " \t")
		if flush && prose {
			paragraphs[len(paragraphs)-1] += " " + line
		} else {
			paragraphs = append(paragraphs, line)
		}
		prose = flush && !strings.HasSuffix(line, ":")
	}
	return paragraphs
}

// wrapLine breaks a line. A text that begins at the second column is continued
// there; 0 is for none.
func wrapLine(line string, second, columns int) []string {
	head, rest := "", strings.TrimLeft(line, " ")
	hang := len(line) - len(rest)
	begun := strings.Repeat(" ", hang)
	if hang > 0 && second > 0 && len(line) > second && line[second-1] == ' ' {
		head, rest, hang = line[:second], line[second:], second
		begun = head
		if columns-second < leastText {
			hang = usualHang
			begun = strings.Repeat(" ", hang)
		}
	}
	var lines []string
	if head != "" && begun != head {
		lines = append(lines, strings.TrimRight(head, " "))
	}
	for i, part := range fill(rest, columns-hang) {
		if i > 0 {
			begun = strings.Repeat(" ", hang)
		}
		lines = append(lines, begun+part)
	}
	return lines
}

// fill breaks a text between words into lines of so many columns. A word that is
// longer has a line of its own.
func fill(text string, columns int) []string {
	var lines []string
	line := ""
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line = word
		case Width(line)+1+Width(word) > columns:
			lines = append(lines, line)
			line = word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
