// Package latticejob implements the LatticeJob API. A LatticeJob is compiled, by package compile, to
// objects that are applied in order of their dependencies, the VCJob that runs its pods last. The
// LatticeJob's status then follows that of its VCJob.
//
// Where Muster runs VCJobs, the VCJob queues, and the LatticeJob reports what it waits for. Where
// Volcano runs them, a LatticeJob whose queue is one of Muster's queues itself, and its VCJob is
// created once it is admitted; any other is handed over to Volcano at once.
package latticejob
