package show

import (
	"regexp"
	"slices"
	"strings"
)

const (
	// leastText is the least width of the text beside a name. With less room it begins
	// on the line below the name.
	leastText = 24
	// usualHang is the indentation of such a text.
	usualHang = 10
)

// inColumns matches a name, such as a flag's, and a text beside it.
var inColumns = regexp.MustCompile(`^( +\S.*?  +)\S`)

// Wrap breaks the lines of a help text between words so that they fit the columns, if
// words are short enough. It fills paragraphs anew, and keeps a text beside a name
// beside it. Blocks with the title Examples and lines that begin with a tab are for
// copying, so they stay as they are.
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

// joined makes one line of consecutive lines that are not indented.
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

// wrapLine breaks a line. Text that begins at the offset second continues there on the
// next lines. If second is 0, the line has no second column.
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

// fill breaks a text between words into lines of so many columns. A longer word gets a
// line of its own.
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
