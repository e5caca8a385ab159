package api_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// reference matches a reference to another file in our pages, scripts and styles.
var reference = regexp.MustCompile(`(?:href=|src=|url: |url\()"?([^"')]+)`)

func TestTheDocsPageNeedsThisServerOnly(t *testing.T) {
	h := newAPI(t, newLedger())
	page, err := url.Parse("/docs")
	require.NoError(t, err)
	seen := map[string]bool{}
	for next := []string{"docs"}; len(next) > 0; next = next[1:] {
		if strings.HasPrefix(next[0], "data:") || seen[next[0]] {
			continue
		}
		seen[next[0]] = true
		where, err := page.Parse(next[0])
		require.NoError(t, err)
		require.Empty(t, where.Host)
		answer := send(h, "GET", where.Path, "")
		require.Equal(t, 200, answer.Code, where.Path)
		if strings.HasPrefix(where.Path, "/openapi.") {
			continue
		}
		requireStrict(t, answer.Header())
		if strings.Contains(where.Path, "swagger-ui") {
			continue // contains the addresses of standards, but loads nothing from them
		}
		require.NotRegexp(t, `//\w`, answer.Body.String(), where.Path)
		require.NotRegexp(t, `<script>|<style|style=| on[a-z]+=|javascript:`, answer.Body.String())
		for _, found := range reference.FindAllStringSubmatch(answer.Body.String(), -1) {
			next = append(next, found[1])
		}
	}
	for _, wanted := range []string{"openapi.json", "openapi.yaml", "docs/docs.js", "docs/docs.css", "docs/swagger-ui-bundle.js", "docs/swagger-ui.css"} {
		require.Contains(t, seen, wanted)
	}
}

// requireStrict checks that a policy names no other server and allows scripts only
// from files.
func requireStrict(t *testing.T, header http.Header) {
	t.Helper()
	policy := map[string]string{}
	for directive := range strings.SplitSeq(header.Get("Content-Security-Policy"), "; ") {
		name, sources, _ := strings.Cut(directive, " ")
		policy[name] = sources
		for source := range strings.FieldsSeq(sources) {
			require.True(t, slices.Contains([]string{"'none'", "'self'", "data:"}, source), directive)
		}
	}
	require.Equal(t, "'none'", policy["default-src"])
	require.Equal(t, "'self'", policy["script-src"])
	for _, name := range []string{"base-uri", "form-action", "frame-ancestors"} {
		require.Equal(t, "'none'", policy[name], "%s does not fall back on default-src", name)
	}
	require.Equal(t, "nosniff", header.Get("X-Content-Type-Options"))
	require.NotEmpty(t, header.Get("Content-Type"))
}

func TestCompressedFilesAreServedToEveryClient(t *testing.T) {
	h := newAPI(t, newLedger())
	for _, file := range []string{"swagger-ui-bundle.js", "swagger-ui.css"} {
		plain := send(h, "GET", "/docs/"+file, "")
		require.Empty(t, plain.Header().Get("Content-Encoding"))
		compressed := send(h, "GET", "/docs/"+file, "", "Accept-Encoding: br, gzip")
		require.Equal(t, "gzip", compressed.Header().Get("Content-Encoding"))
		unpacked, err := gzip.NewReader(compressed.Body)
		require.NoError(t, err)
		text, err := io.ReadAll(unpacked)
		require.NoError(t, err)
		require.Equal(t, plain.Body.Bytes(), text)
		require.Greater(t, plain.Body.Len(), 10_000)
	}
}
