package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
)

// initialize makes the cluster unless it exists. initdb works in a draft directory,
// which is renamed at the end, so a cluster is either complete or absent.
func (h home) initialize(ctx context.Context, installed installation, ephemeral bool) error {
	if h.hasCluster() {
		return nil
	}
	unfinished, err := fs.Glob(os.DirFS(h.dir), "initdb-*") // of an initdb that was killed
	for _, draft := range unfinished {
		err = errors.Join(err, os.RemoveAll(filepath.Join(h.dir, draft)))
	}
	if err != nil {
		return fmt.Errorf("remove an unfinished cluster: %w", err)
	}
	draft, err := os.MkdirTemp(h.dir, "initdb-")
	if err != nil {
		return fmt.Errorf("make the cluster: %w", err)
	}
	if err := h.owner.give(draft); err != nil {
		return err
	}
	args := []string{
		"-D", draft, "-U", userName, "-E", "UTF8", "--no-locale",
		"--auth-local=trust", "--auth-host=reject", "--no-instructions",
	}
	if ephemeral {
		args = append(args, "--no-sync")
	}
	if _, err := outputOf(ctx, childOf(ctx, h, filepath.Join(installed.dir, "initdb"), args, syscall.SIGKILL)); err != nil {
		return errors.Join(fmt.Errorf("make the cluster: %w", err), os.RemoveAll(draft))
	}
	if err := os.Rename(draft, h.data()); err != nil {
		return errors.Join(fmt.Errorf("make the cluster: %w", err), os.RemoveAll(draft))
	}
	return syncDir(h.dir)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("sync the data directory: %w", err)
	}
	if err := errors.Join(dir.Sync(), dir.Close()); err != nil {
		return fmt.Errorf("sync the data directory: %w", err)
	}
	return nil
}

// settings suit a small machine that PostgreSQL shares with the orchestrator and its
// plugins; docs/how-to/postgresql.md explains each. Everything about durability stays
// at PostgreSQL's defaults, which are safe.
var settings = map[string]string{
	"shared_buffers":           "256MB",
	"max_connections":          "100",
	"max_wal_size":             "2GB",
	"checkpoint_timeout":       "15min",
	"wal_buffers":              "16MB",
	"jit":                      "off", // it only slows short statements down
	"autovacuum_naptime":       "15s", // rows do not stay in the lists for long
	"timezone":                 "UTC",
	"log_timezone":             "UTC",
	"lc_messages":              "C", // serverLog reads the severities
	"log_line_prefix":          "",
	"log_destination":          "stderr",
	"logging_collector":        "off",
	"log_error_verbosity":      "terse", // details contain values of rows
	"log_checkpoints":          "off",
	"unix_socket_permissions":  "0700",
	"shared_preload_libraries": "",
}

// ephemeral is for the servers of tests, which may lose everything in a crash.
var ephemeral = map[string]string{
	"shared_buffers":     "128MB",
	"fsync":              "off",
	"synchronous_commit": "off",
	"full_page_writes":   "off",
	"max_wal_size":       "1GB",
}

// ownerSetting contains the pid of the process that started the server.
const ownerSetting = "holdfast.owner"

// arguments are the settings as command-line arguments. These override the
// configuration file, so an older cluster has them too. fitted depends on the machine
// and the installation. access says how the server is reached; nothing overrides it.
func arguments(cfg Config, fitted, access map[string]string) []string {
	all := map[string]string{}
	maps.Copy(all, settings)
	maps.Copy(all, fitted)
	if cfg.Ephemeral {
		maps.Copy(all, ephemeral)
	}
	maps.Copy(all, cfg.Settings)
	maps.Copy(all, access)
	all[ownerSetting] = strconv.Itoa(os.Getpid())
	var args []string
	for name, value := range all {
		args = append(args, name+"="+value)
	}
	slices.Sort(args)
	withFlags := make([]string, 0, 2*len(args))
	for _, arg := range args {
		withFlags = append(withFlags, "-c", arg)
	}
	return withFlags
}

const mebibyte = 1 << 20

// machine is what the server runs on, in bytes; zero if unknown.
type machine struct {
	memory uint64
	disk   uint64 // of the file system, free or not
}

// settings derives settings from the machine: a quarter of its memory for the cache and
// a tenth of its disk for the log. With less than the lower limits, the server would
// write pages over and over; with more than the upper limits, it would gain nothing.
func (m machine) settings() map[string]string {
	follow := map[string]string{}
	if m.memory > 0 {
		follow["shared_buffers"] = megabytes(m.memory/4, 128, 512)
	}
	if m.disk > 0 {
		follow["max_wal_size"] = megabytes(m.disk/10, 256, 2048)
	}
	return follow
}

// megabytes is a size as PostgreSQL reads it, between the bounds.
func megabytes(size, least, most uint64) string {
	return fmt.Sprintf("%dMB", min(max(size/mebibyte, least), most))
}
