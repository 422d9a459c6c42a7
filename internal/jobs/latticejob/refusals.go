package latticejob

import (
	"fmt"
	"strings"
	"time"

	lattice "github.com/musterhq/muster/api/lattice/v1alpha1"
)

// refusalTimeout is how long a job keeps its quota while the API server refuses one of its objects.
const refusalTimeout = 15 * time.Second

// refusedSince, followed by the time of the first refusal, ends the message of a job that holds quota
// while one of its objects is refused for a reason that users must fix.
const refusedSince = ", refused since "

// refusedSince returns since when, in this admission and without a break, objects of the job have been
// refused, and why; zero if they have not.
func (v *view) refusedSince() (since time.Time, why string) {
	why, failed := strings.CutPrefix(v.job.Status.Message, fmt.Sprintf(lattice.RetryApplyMessage, ""))
	at := strings.LastIndex(why, refusedSince)
	if !failed || at < 0 {
		return time.Time{}, ""
	}
	since, err := time.Parse(time.RFC3339, why[at+len(refusedSince):])
	if admitted := v.seen.Admission.UnreadySince; err != nil || admitted.IsZero() ||
		since.Before(admitted.Truncate(time.Second)) {
		return time.Time{}, ""
	}
	return since, why[:at]
}

// refused returns why objects of an admitted job have been refused for so long that the job gives up
// its quota, "" if they have not. The job tries again when it is admitted again.
func (v *view) refused() string {
	since, why := v.refusedSince()
	if since.IsZero() || v.seen.Now.Before(since.Add(refusalTimeout)) {
		return ""
	}
	return why
}
