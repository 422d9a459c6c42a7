// Package latticejob is the LatticeJob API. A LatticeJob is compiled, by the package
// below it, to objects that are applied, those first that others depend on, and last the
// VCJob that runs its pods. The job then stands where its VCJob does.
//
// Where Muster runs VCJobs it is the VCJob that queues, and a LatticeJob tells what it
// waits for. Where Volcano does, a LatticeJob whose queue is one of Muster's queues for
// itself, and its VCJob is made when it is admitted; any other is handed over at once.
package latticejob
