package view

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// sizes are the fewest and the most pods of an elastic job.
type sizes struct{ least, most int32 }

// noteSizes reads between how many pods the job runs, where its Workload says that it is elastic.
func (s *subject) noteSizes() {
	var all sizes
	elastic := false
	for i := range s.workload.Spec.PodSets {
		podSet := &s.workload.Spec.PodSets[i]
		least, err := strconv.ParseInt(podSet.Template.Annotations[muster.MinReplicasAnnotation], 10, 32)
		if err != nil {
			all.least += podSet.Count
			all.most += podSet.Count
			continue
		}
		elastic = true
		most := workload.Wanted(s.workload, podSet)
		all.least += min(int32(least), most)
		all.most += most
	}
	if elastic {
		s.sizes = all
	}
}

// resize is how the message of a resize says from how many pods to how many, and for whom.
var resize = regexp.MustCompile(`from (\d+) to (\d+) pods(.*)$`)

// noteResized notes how the job, if it runs, came to its size.
func (s *subject) noteResized(now time.Time) {
	c := condition(s.workload, muster.ResizedCondition)
	if c == nil || s.workload.Status.Admission == nil || !workload.IsAdmitted(s.workload) {
		return
	}
	words := resize.FindStringSubmatch(c.Message)
	if words == nil {
		return
	}
	s.partial = join(strings.ToLower(c.Reason)+" "+words[1]+" -> "+words[2]+words[3]+" "+Duration(now.Sub(c.LastTransitionTime.Time))+" ago", s.partial)
}
