package main

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/stretchr/testify/require"
)

// ask requests a path that is for operators.
func ask(t *testing.T, url, user, password string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/debug/nothing", nil)
	require.NoError(t, err)
	if user != "" {
		request.SetBasicAuth(user, password)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	return answer.StatusCode
}

var printedPassword = regexp.MustCompile(`(?s)user      admin\n  password  (\S+)\n`)

func TestTheFirstStartCreatesCredentialsAndPrintsThemOnce(t *testing.T) {
	s := serve(t, untilDrained)
	url := s.log.await(t, "listening")["url"].(string)
	found := printedPassword.FindStringSubmatch(s.out.String())
	require.NotNil(t, found, s.out.String())
	password := found[1]
	directory, err := os.Getwd()
	require.NoError(t, err)
	file := filepath.Join(directory, "data/credentials")
	require.Contains(t, s.out.String(), "kept in "+file)

	require.Equal(t, 401, ask(t, url, "", ""))
	require.Equal(t, 401, ask(t, url, "admin", "wrong"))
	require.Equal(t, 404, ask(t, url, "admin", password))
	s.cancel()
	require.Equal(t, exitOK, s.exit(t))
	require.NotContains(t, s.log.String(), password)

	again := serveIn(t, directory, untilDrained)
	url = again.log.await(t, "listening")["url"].(string)
	require.Equal(t, 404, ask(t, url, "admin", password))
	require.Empty(t, again.out.String(), "printed once")

	again.cancel()
	require.Equal(t, exitOK, again.exit(t))
	require.NoError(t, os.Chmod(file, 0o644))
	refused := serveIn(t, directory, untilDrained)
	require.Equal(t, exitUsage, refused.exit(t))
	require.Contains(t, refused.log.String(), "security.credentials_file: "+file+" can be read or written by others")
	require.NotContains(t, refused.log.String()+refused.out.String(), password)
}

func TestCredentialsThatCannotBeStoredArePrintedAtEachStart(t *testing.T) {
	directory := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(directory, "data"), nil, 0o600))
	var passwords []string
	for range 2 {
		s := serveIn(t, directory, untilDrained)
		url := s.log.await(t, "listening")["url"].(string)
		found := printedPassword.FindStringSubmatch(s.out.String())
		require.NotNil(t, found)
		require.Equal(t, 404, ask(t, url, "admin", found[1]))
		s.log.await(t, "the credentials could not be stored; the next start creates others")
		passwords = append(passwords, found[1])
		s.cancel()
		require.Equal(t, exitOK, s.exit(t))
		require.NotContains(t, s.log.String(), found[1])
	}
	require.NotEqual(t, passwords[0], passwords[1])
}

func TestOtherMachinesNeedCredentials(t *testing.T) {
	const digest = "security.tokens.0.token_sha256=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	token := []string{"security.tokens.0.name=a", "security.tokens.0.scopes=operate", digest}
	for name, c := range map[string]struct {
		sets []string
		// refused is a part of the error; empty when it serves.
		refused string
		// stranger is the answer to a request without credentials.
		stranger int
	}{
		"public":                         {[]string{"server.address=0.0.0.0:0"}, "set security.password or security.tokens", 0},
		"public, IPv6":                   {[]string{"server.address=[::]:0"}, "set security.password or security.tokens", 0},
		"public, no host":                {[]string{"server.address=:0"}, "set security.password or security.tokens", 0},
		"public, off":                    {[]string{"server.address=:0", "security.enabled=false"}, "security.allow_public=true", 0},
		"public, off, allowed":           {[]string{"server.address=:0", "security.enabled=false", "security.allow_public=true"}, "", 404},
		"public, allowed but on":         {[]string{"server.address=:0", "security.allow_public=true"}, "security.password", 0},
		"public, password":               {[]string{"server.address=:0", "security.password=canary"}, "", 401},
		"public, token":                  {append([]string{"server.address=:0"}, token...), "", 401},
		"loopback":                       {nil, "", 404},
		"loopback by name":               {[]string{"server.address=localhost:0"}, "", 404},
		"loopback, off":                  {[]string{"security.enabled=false"}, "", 404},
		"loopback, password":             {[]string{"security.password=canary"}, "", 404},
		"loopback, token":                {token, "", 401},
		"loopback, IPv4 written in IPv6": {[]string{"server.address=[::ffff:127.0.0.1]:0"}, "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			var args []string
			for _, set := range c.sets {
				args = append(args, "--set", set)
			}
			s := serve(t, untilDrained, args...)
			if c.refused != "" {
				require.Equal(t, exitUsage, s.exit(t))
				require.Contains(t, s.log.String(), c.refused)
				require.NotContains(t, s.log.String(), "database", "nothing has been started")
				return
			}
			url := s.log.await(t, "listening")["url"].(string)
			code, err := get(t, url+"/nothing")
			require.NoError(t, err)
			require.Equal(t, c.stranger, code)
			code, err = get(t, url+"/healthz")
			require.NoError(t, err)
			require.Equal(t, 200, code)
			awaitReady(t, url)
			if strings.Contains(name, "password") {
				require.Equal(t, 404, ask(t, url, "admin", "canary"))
				require.NoFileExists(t, "data/credentials")
			}
			require.NotContains(t, s.log.String()+s.out.String(), "canary")
		})
	}
}

// dribble opens connections that never send a whole request.
func dribble(t *testing.T, url string, count int) []net.Conn {
	t.Helper()
	connections := make([]net.Conn, count)
	for i := range connections {
		connection, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(url, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { _ = connection.Close() })
		_, err = connection.Write([]byte("GET /healthz HTTP/1.1\r\n"))
		require.NoError(t, err)
		connections[i] = connection
	}
	return connections
}

func TestAThousandSlowClientsDoNotSlowTheOthers(t *testing.T) {
	s := serve(t, untilDrained)
	url := s.log.await(t, "listening")["url"].(string)
	dribble(t, url, 1000)
	for range 50 {
		began := time.Now()
		code, err := get(t, url+"/healthz")
		require.NoError(t, err)
		require.Equal(t, 200, code)
		require.Less(t, time.Since(began), 30*time.Second) // slow clients stay for a minute
	}
}

func TestMoreConnectionsThanAllowedWait(t *testing.T) {
	s := serve(t, untilDrained, "--set", "server.max_connections=3")
	url := s.log.await(t, "listening")["url"].(string)
	slow := dribble(t, url, 3)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/healthz", nil)
	require.NoError(t, err)
	impatient := &http.Client{Timeout: 100 * time.Millisecond, Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := impatient.Do(request)
	if err == nil {
		_ = answer.Body.Close()
	}
	require.Error(t, err, "all places are taken")
	require.NoError(t, slow[0].Close())
	code, err := get(t, url+"/healthz")
	require.NoError(t, err)
	require.Equal(t, 200, code)
}

func TestTheGreetingSaysHowToLogIn(t *testing.T) {
	closed := []config.Token{{Name: "ci"}}
	for name, c := range map[string]struct {
		cfg    config.Security
		public bool
		want   string
	}{
		"nobody needs to":        {cfg: config.Security{Enabled: true, User: "admin"}},
		"not even from afar":     {cfg: config.Security{User: "admin", AllowPublic: true}, public: true},
		"with the password":      {cfg: config.Security{Enabled: true, User: "ann", Password: "p"}, public: true, want: " -u ann"},
		"with the kept password": {cfg: config.Security{Enabled: true, User: "ann", Tokens: closed}, want: " -u ann"},
		"with a token": {
			cfg:    config.Security{Enabled: true, User: "ann", Tokens: closed},
			public: true, want: ` -H "Authorization: Bearer $TOKEN"`,
		},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, curlLogin(&c.cfg, c.public)) })
	}
}
