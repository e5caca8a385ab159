package show

// Style is how text looks on a screen with styles.
type Style string

// The styles, by meaning. Their values are the parameters of the terminal's escape
// sequence "select graphic rendition".
const (
	Plain Style = ""
	Good  Style = "32" // green
	Busy  Style = "36" // cyan
	Mind  Style = "33" // yellow
	Bad   Style = "31" // red
	Faint Style = "2"
	Head  Style = "1" // bold
)

// Paint returns the text in the style. The text must be clean.
func (s Screen) Paint(style Style, text string) string {
	if !s.Color || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}
