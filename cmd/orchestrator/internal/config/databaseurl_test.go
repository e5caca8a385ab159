package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPasswordsAreNotPrinted(t *testing.T) {
	for url, want := range map[DatabaseURL]string{
		"postgres://u:s3cret@h:5432/d?sslmode=disable":          "postgres://u:xxxxx@h:5432/d?sslmode=disable",
		"postgres://h/d?user=u&password=s3cret&sslmode=require": "postgres://h/d?user=u&password=xxxxx&sslmode=require",
		"postgres://u:s3cret%zz@h/d":                            "(a malformed URL)",
		"host=h user=u password=s3cret dbname=d":                "host=h user=u password=xxxxx dbname=d",
		`host=h password = 's3 c\'ret' dbname=d`:                "host=h password=xxxxx dbname=d",
		"host=h sslpassword=s3cret":                             "host=h sslpassword=xxxxx",
		"postgres:///holdfast?host=/run/postgresql":             "postgres:///holdfast?host=/run/postgresql",
	} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "url", url)
		asJSON, err := json.Marshal(map[string]any{"url": url})
		require.NoError(t, err)
		for _, printed := range []string{
			url.String(), fmt.Sprintf("%v %s %+v %#v %q", url, url, Database{URL: url}, Database{URL: url}, url),
			log.String(), string(asJSON),
		} {
			require.NotContains(t, printed, "cret")
		}
		require.Equal(t, want, url.String())
	}
	require.Equal(t, "postgres://u:p@h", DatabaseURL("postgres://u:p@h").Reveal())
}
