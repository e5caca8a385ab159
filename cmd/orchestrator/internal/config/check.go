package config

import (
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"path/filepath"
	"slices"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/runtime"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// MostBodyBytes is the largest server.max_body_bytes.
const MostBodyBytes = 32 << 20

// finish makes paths absolute, fills in defaults that depend on other settings, and
// rejects what cannot work. Its errors name the key.
func (c *Config) finish(environ []string) error {
	roles, err := job.ParseRoles(c.Roles)
	if err != nil {
		return fmt.Errorf("roles: %w", err)
	}
	c.Roles = roles.Names()
	if err := c.check(); err != nil {
		return err
	}
	if err := c.Jobs.check(); err != nil {
		return err
	}
	if _, err := c.Limits.List(); err != nil {
		return err
	}
	if _, err := c.Schedules.List(); err != nil {
		return err
	}
	if _, err := c.Retention.Policies(); err != nil {
		return err
	}
	if err := c.Events.check(); err != nil {
		return fmt.Errorf("events.%w", err)
	}
	if err := c.Security.finish(environ); err != nil {
		return fmt.Errorf("security.%w", err)
	}
	if err := c.RateLimit.check(); err != nil {
		return fmt.Errorf("rate_limit.%w", err)
	}
	if err := c.Tracing.finish(environ); err != nil {
		return fmt.Errorf("tracing.%w", err)
	}
	c.Security.CredentialsFile = c.resolvePath(c.Security.CredentialsFile)
	c.Embedded.DataDir = c.resolvePath(c.Embedded.DataDir)
	c.Embedded.BinDir = c.resolvePath(c.Embedded.BinDir)
	names := map[string]bool{}
	for i := range c.Plugins {
		h := &c.Plugins[i]
		if err := h.finish(environ); err != nil {
			return fmt.Errorf("plugins.%d.%w", i, err)
		}
		if names[h.Name] {
			return fmt.Errorf("plugins.%d.name: %q is taken by another plugin", i, h.Name)
		}
		names[h.Name] = true
		h.Path = c.resolvePath(h.Path)
	}
	return nil
}

// resolvePath makes a path absolute. It is relative to the directory of the file
// that was read, or to the working directory if there is none.
func (c *Config) resolvePath(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	if c.Source != "" {
		return filepath.Join(filepath.Dir(c.Source), path)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	return absolute
}

// leastReplicaLag is a few times the age that is seen of a replica that is never behind.
const leastReplicaLag = 3 * time.Second

func (c *Config) check() error {
	if _, _, err := net.SplitHostPort(c.Server.Address); err != nil {
		return fmt.Errorf("server.address: %q is not host:port", c.Server.Address)
	}
	for name, d := range map[string]time.Duration{
		"server.request_timeout": c.Server.RequestTimeout, "server.read_header_timeout": c.Server.ReadHeaderTimeout,
		"server.read_timeout": c.Server.ReadTimeout, "server.write_timeout": c.Server.WriteTimeout,
		"server.idle_timeout": c.Server.IdleTimeout, "worker.poll_interval": c.Worker.PollInterval, "worker.kill_grace": c.Worker.KillGrace,
	} {
		if d <= 0 {
			return fmt.Errorf("%s: %s is not above zero", name, d)
		}
	}
	_, hasLevel := levels[c.Log.Level]
	_, proxiesErr := Networks(c.Server.TrustedProxies)
	switch {
	case c.Server.MaxBodyBytes < 1024 || c.Server.MaxBodyBytes > MostBodyBytes:
		return fmt.Errorf("server.max_body_bytes: %d is not from 1024 to %d", c.Server.MaxBodyBytes, MostBodyBytes)
	case c.Server.MaxBatchBytes < c.Server.MaxBodyBytes || c.Server.MaxBatchBytes > 1<<30:
		return fmt.Errorf("server.max_batch_bytes: %d is not from server.max_body_bytes, %d, to %d",
			c.Server.MaxBatchBytes, c.Server.MaxBodyBytes, 1<<30)
	case c.Server.MaxReceivingBytes < c.Server.MaxBatchBytes:
		return fmt.Errorf("server.max_receiving_bytes: %d is below server.max_batch_bytes, %d",
			c.Server.MaxReceivingBytes, c.Server.MaxBatchBytes)
	case c.Server.MaxHeaderBytes < 1024:
		return fmt.Errorf("server.max_header_bytes: %d is below 1024", c.Server.MaxHeaderBytes)
	case c.Server.MaxConnections < 1:
		return fmt.Errorf("server.max_connections: %d is below 1", c.Server.MaxConnections)
	case proxiesErr != nil:
		return fmt.Errorf("server.trusted_proxies: %w", proxiesErr)
	case c.Database.DirectURL != "" && c.Database.URL == "":
		return errors.New("database.direct_url: is set, but database.url is not: it is the way past the pooler that database.url leads through")
	case c.Database.ReplicaURL != "" && c.Database.URL == "":
		return errors.New("database.replica_url: is set, but database.url is not: it leads to a standby of that server")
	case c.Database.ReplicaMaxLag < leastReplicaLag:
		return fmt.Errorf("database.replica_max_lag: %s is below %s: the lag is measured once a second", c.Database.ReplicaMaxLag, leastReplicaLag)
	case c.Database.MaxConnections < 2:
		return fmt.Errorf("database.max_connections: %d is below 2", c.Database.MaxConnections)
	case c.Database.StartWait < 0:
		return fmt.Errorf("database.start_wait: %s is below zero", c.Database.StartWait)
	case c.Database.CellNumber != nil && (*c.Database.CellNumber < 0 || *c.Database.CellNumber > math.MaxUint8):
		return fmt.Errorf("database.cell: %d is not from 0 to %d", *c.Database.CellNumber, math.MaxUint8)
	case c.Embedded.DataDir == "":
		return errors.New("embedded.data_dir: is empty")
	case c.Worker.ID == "":
		return errors.New("worker.id: is empty")
	case c.Worker.Concurrency < 1:
		return fmt.Errorf("worker.concurrency: %d is below 1", c.Worker.Concurrency)
	case c.Worker.Lease < time.Second:
		return fmt.Errorf("worker.lease: %s is below 1s", c.Worker.Lease)
	case c.Worker.KillGrace >= c.Worker.Lease/2:
		return fmt.Errorf("worker.kill_grace: %s is not below half of worker.lease, %s", c.Worker.KillGrace, c.Worker.Lease)
	case c.Worker.Prefetch < 0 || c.Worker.Prefetch > time.Second:
		return fmt.Errorf("worker.prefetch: %s is not from 0s to 1s", c.Worker.Prefetch)
	case c.Worker.ReportInterval < 0 || c.Worker.ReportInterval > time.Minute:
		return fmt.Errorf("worker.report_interval: %s is not from 0s to 1m", c.Worker.ReportInterval)
	case c.Worker.Ageing != 0 && c.Worker.Ageing < time.Second:
		return fmt.Errorf("worker.ageing: %s is neither 0s nor at least 1s", c.Worker.Ageing)
	case c.Worker.CrashPolicy == "give_back":
		return fmt.Errorf("worker.crash_policy: give_back is now called %s", runtime.Release)
	case c.Worker.CrashPolicy != runtime.Expire && c.Worker.CrashPolicy != runtime.Release:
		return fmt.Errorf("worker.crash_policy: %q is not one of %s, %s", c.Worker.CrashPolicy, runtime.Expire, runtime.Release)
	case c.Worker.DrainTimeout < 0:
		return fmt.Errorf("worker.drain_timeout: %s is below zero", c.Worker.DrainTimeout)
	case c.Worker.PluginsCgroup != host.CgroupAuto && c.Worker.PluginsCgroup != host.CgroupNone && !filepath.IsAbs(c.Worker.PluginsCgroup):
		return fmt.Errorf("worker.plugins_cgroup: %q is not auto, none or the absolute path of a cgroup", c.Worker.PluginsCgroup)
	case !hasLevel:
		return fmt.Errorf("log.level: %q is not one of debug, info, warn, error", c.Log.Level)
	case !slices.Contains([]string{"auto", "text", "json"}, c.Log.Format):
		return fmt.Errorf("log.format: %q is not one of auto, text, json", c.Log.Format)
	case !slices.Contains([]runtime.JobLog{runtime.LogAll, runtime.LogSampled, runtime.LogNone}, c.Log.Jobs):
		return fmt.Errorf("log.jobs: %q is not one of all, sampled, none", c.Log.Jobs)
	}
	return nil
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// Threshold is the least level that is logged.
func (l Log) Threshold() slog.Level { return levels[l.Level] }
