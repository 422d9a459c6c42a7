// Package durations says how long a workload runs, as far as that is known: from its limit, from what its object says,
// and from what workloads of its kind took. A Forecast is what the engine plans with; a Learner remembers what was
// taken, in bounded memory.
//
// An estimate stops no workload, and no promise rests on it: only limits do. The package knows neither queues nor
// quota, and reads no clock.
package durations
