// Package census tells which processes the machine has, who forked them and what
// they take, as /proc says. It works on Linux only.
package census
