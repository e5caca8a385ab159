package ui_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The policy forbids what is inline, and browsers ignore it silently.
func TestNothingInTemplatesIsInline(t *testing.T) {
	forbidden := map[string]*regexp.Regexp{
		"an inline script":              regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>\s*[^<\s]|<script(?:\s+(?:defer|async|type="[^"]*"))*\s*>`),
		"an inline style":               regexp.MustCompile(`(?i)<style`),
		"a style attribute":             regexp.MustCompile(`(?i)[\s"']style\s*=`),
		"an event attribute":            regexp.MustCompile(`(?i)[\s"']on[a-z]+\s*=`),
		"a script as a URL":             regexp.MustCompile(`(?i)(?:javascript|js):`),
		"an attribute of htmx":          regexp.MustCompile(`(?i)\bhx-`),
		"a URL of another site":         regexp.MustCompile(`(?i)(?:src|href|action)\s*=\s*["']?(?:https?:)?//`),
		"an autofocus, which surprises": regexp.MustCompile(`(?i)\bautofocus\b`),
	}
	files, err := filepath.Glob("templates/*.html")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for name, pattern := range forbidden {
			require.Empty(t, pattern.FindString(string(text)), "%s has %s", file, name)
		}
	}
	for name, sample := range map[string]string{
		"an inline script": "<script>x()</script>", "an inline style": "<style>", "a style attribute": `<p style="color:red">`,
		"an event attribute": `<p onclick="x()">`, "a script as a URL": `<a href="javascript:x()">`, "an attribute of htmx": `<p hx-on:click="x">`,
		"a URL of another site": `<img src="https://example.com/x">`, "an autofocus, which surprises": "<input autofocus>",
	} {
		require.Regexp(t, forbidden[name], sample, "and the test finds it")
	}
	require.NotRegexp(t, forbidden["an inline script"], `<script src="/x.js" defer></script>`)
}
