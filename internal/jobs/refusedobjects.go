package jobs

import "time"

// A job needs more objects than pods: a JobSet needs Jobs, a LatticeJob ConfigMaps, a GenericJob Services. The API
// server may refuse one of these objects for a quota, a policy or a webhook, or an object of another owner may have its
// name. Either way the job gets no further until a user mends that, so the job gives its quota back, like a job whose
// pods are refused.
//
// Example: a JobSet of four Jobs is admitted in a namespace whose ResourceQuota allows no Jobs. Its first reconcile
// tries to create them in vain. The second one, milliseconds later, says so in the status of the JobSet and of its
// Workload, and tries again. If the API server accepts no more Jobs within 15 s, the JobSet is evicted.

// RefusedObjects says which of the objects that a job needs it does not get. The zero value means that nothing is
// refused.
type RefusedObjects struct {
	// Objects is the lowest number of refused objects since the first refusal. Since is when that number was reached, by
	// this process's clock.
	Objects int
	Since   time.Time
	// What cannot be done, and Why, for users: "Its Jobs cannot be created" because of the quota.
	What, Why string
}

// Message says what is refused, and why; "" if nothing is.
func (r RefusedObjects) Message() string {
	if r.Why == "" {
		return ""
	}
	return r.What + ": " + r.Why
}
