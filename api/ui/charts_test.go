package ui_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
)

func TestTheWindowOfTheOverviewIsThatOfItsCharts(t *testing.T) {
	for query, want := range map[string]string{
		"": "15m", "?minutes=15": "15m", "?minutes=60": "1h", "?minutes=1440": "24h", "?minutes=7": "15m",
	} {
		answers := healthy()
		series, got := answers["GET /debug/series"], ""
		answers["GET /debug/series"] = func(r *http.Request) any {
			got = r.URL.Query().Get("window")
			return series
		}
		require.Equal(t, 200, newPages(answers).get("/ui/"+query).Code)
		require.Equal(t, want, got, query)
	}
}

func TestTheChartsHaveTheirScriptsAndATable(t *testing.T) {
	page := newPages(healthy()).get("/ui/").Body.String()
	require.Regexp(t, `<script src="/ui/assets/uplot\.[0-9a-f]+\.js" defer>[\s\S]*<script src="/ui/assets/charts\.[0-9a-f]+\.js" defer>`, page)
	require.Contains(t, page, `(so far)`)
	require.Contains(t, page, `data-v="0.004">4 ms<`)
	require.Contains(t, page, `aria-label="1,034 ended, 4 failed"`)
}

func TestATypeWithoutEndsHasNoPicture(t *testing.T) {
	answers := healthy()
	series := answers["GET /debug/series"].(v1.Series)
	series.JobTypes = nil
	answers["GET /debug/series"] = series
	require.NotContains(t, newPages(answers).get("/ui/").Body.String(), "<svg")
}
