// Package job is Holdfast's vocabulary and its pure decisions: what a job is,
// which states it can be in, what a lease, an attempt and an outcome are, and
// what becomes of a job when an attempt ends (Decide).
//
// It imports the standard library only. Every other package speaks in its
// terms, and none of them needs another to do so.
package job
