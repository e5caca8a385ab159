package ui

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/holdfast-jobs/holdfast/store/embedded"
	"github.com/holdfast-jobs/holdfast/test/rig/rigtest"
)

// patience bounds every wait for something that should happen soon.
const patience = rigtest.Patience

// glance is the pause between two checks.
const glance = 20 * time.Millisecond

var (
	// bin is the directory of the tested binaries.
	bin string
	// postgres is the server that every test has a database on.
	postgres *cluster
	// browser is the one Chromium. Each test has an incognito window of it.
	browser context.Context
)

func TestMain(m *testing.M) {
	flag.Parse()
	_ = flag.Set("test.parallel", "2")
	code, err := withBrowser(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// withBrowser builds the program, and runs the tests with a server and a browser.
func withBrowser(run func() int) (code int, err error) {
	if bin, err = rigtest.Build("../../bin/ui", "../../cmd/orchestrator", "../../cmd/handlers", "../../test/e2e/testhandlers"); err != nil {
		return 1, fmt.Errorf("build: %w", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var end func() error
	if postgres, end, err = startPostgres(ctx); err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, end()) }()

	profile, err := os.MkdirTemp("", "holdfast-ui-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(profile) }()
	allocator, closeBrowser := chromedp.NewExecAllocator(context.Background(), options(profile)...)
	defer closeBrowser()
	window, closeWindow := chromedp.NewContext(allocator)
	defer closeWindow()
	if err := chromedp.Do(window); err != nil {
		return 1, fmt.Errorf("start Chromium, which scripts/need.sh chromium installs: %w", err)
	}
	browser = window
	return run(), nil
}

// options are for a browser that asks nobody but the tested server for anything. Root cannot
// have a sandbox.
func options(profile string) []chromedp.ExecAllocatorOption {
	flags := map[string]any{
		"no-sandbox": true, "disable-gpu": true, "disable-dev-shm-usage": true, "disable-quic": true, "no-first-run": true,
		"no-default-browser-check": true, "disable-background-networking": true, "disable-component-update": true, "disable-sync": true,
		"disable-default-apps": true, "disable-extensions": true, "disable-search-engine-choice-screen": true,
		"disable-background-timer-throttling": true, "disable-renderer-backgrounding": true, "hide-scrollbars": true,
		"disable-features": "Translate,OptimizationHints,MediaRouter,HttpsUpgrades", "force-color-profile": "srgb", "lang": "en-US",
	}
	all := []chromedp.ExecAllocatorOption{
		chromedp.Headless, chromedp.UserDataDir(profile), chromedp.WSURLReadTimeout(patience),
		chromedp.Env("HOME="+profile, "XDG_CONFIG_HOME="+profile, "XDG_CACHE_HOME="+profile, "TZ=UTC"),
	}
	for name, value := range flags {
		all = append(all, chromedp.Flag(name, value))
	}
	return all
}

// cluster is a server in a directory of its own, which stops and starts again.
type cluster struct {
	dir    string
	server *embedded.Server
}

func (c *cluster) start(ctx context.Context) (err error) {
	c.server, err = embedded.Start(ctx, embedded.Config{DataDir: filepath.Join(c.dir, "pg"), Ephemeral: true})
	return err
}

// stop ends the server as pg_ctl stop does: its sessions are ended.
func (c *cluster) stop(ctx context.Context) error { return c.server.Stop(ctx) }

// startPostgres starts a server. end stops it, and removes its directory.
func startPostgres(ctx context.Context) (c *cluster, end func() error, err error) {
	dir, err := os.MkdirTemp("", "holdfast-test-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	// As root, PostgreSQL runs as another user.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	c = &cluster{dir: dir}
	if err := c.start(ctx); err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return c, func() error {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return errors.Join(c.stop(ctx), remove())
	}, nil
}
