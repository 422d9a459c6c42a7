// Package progress decides what follows from the progress that training code reports: what a valid report is, which of
// several pods of a job is heard, when the job is expected to end, and when that is written to its Workload.
//
// An example: pod 0 of a job reports 3,600 remaining seconds at 14:00. The job is expected to end at 15:00, which is
// written. Pod 3 reports 10 seconds; nobody hears it, because pod 0 has reported recently. At 14:30 pod 0 reports 1,900
// seconds: the end has moved by 100 seconds, which is less than a tenth of 1,900, so nothing is written.
//
// The package is pure: times come from the caller. Package rendezvous receives the reports and makes the writes.
package progress
