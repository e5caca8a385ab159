// Package model checks models of Holdfast's protocol with Spin: every order of the steps of a
// job, three workers, a reaper, a client, an operator, and failovers (lease.pml), of clients that
// submit with one key (submission.pml), and of jobs that share limits (admission.pml). A model that
// lacks one of the guards must violate the property that the test names, so that a model that
// cannot fail is noticed.
//
// Spin's input is Promela (https://spinroot.com/spin/Man/promela.html). To look at how a check
// failed, run make test-model: it prints the steps.
package model
