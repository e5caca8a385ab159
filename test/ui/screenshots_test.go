package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// largest is how many bytes a screenshot may have.
const largest = 150_000

// TestScreenshots makes the pictures of docs/ui.md anew.
func TestScreenshots(t *testing.T) {
	into := os.Getenv("HOLDFAST_TEST_SCREENSHOTS")
	if into == "" {
		t.Skip("it writes docs/images: make screenshots")
	}
	s, jobs := everyday(t)
	b := newTab(t, s.origin)
	b.login(s)
	for _, theme := range []string{"light", "dark"} {
		b.look(1280, theme)
		for name, path := range map[string]string{
			"overview": "/ui/", "job": "/ui/jobs/" + jobs["retrying"], "dead-letters": "/ui/dead-letters",
			"workflow": "/ui/workflows/" + jobs["workflow"],
		} {
			b.open(path)
			taken, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
			require.NoError(t, err)
			require.Less(t, len(taken), largest, name)
			require.NoError(t, os.WriteFile(filepath.Join(into, fmt.Sprintf("%s-%s.png", name, theme)), taken, 0o644)) //nolint:gosec // for everybody
		}
	}
}
