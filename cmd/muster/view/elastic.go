package view

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
	"github.com/musterhq/muster/api/muster"
	"github.com/musterhq/muster/internal/workload"
)

// noteSizes sets s.sizes if the Workload is elastic. Its queue does not resize pods that are tied: once admitted, tied
// pods are shown like the pods of any job that was admitted with fewer.
func (s *subject) noteSizes() {
	var all sizes
	elastic, fixed := false, false
	for i := range s.workload.Spec.PodSets {
		podSet := &s.workload.Spec.PodSets[i]
		least, err := strconv.ParseInt(podSet.Template.Annotations[muster.MinReplicasAnnotation], 10, 32)
		if err != nil {
			all.least += podSet.Count
			all.most += podSet.Count
			continue
		}
		elastic, fixed = true, workload.IsTied(podSet) && s.workload.Status.Admission != nil
		most := workload.Wanted(s.workload, podSet)
		all.least += min(int32(least), most)
		all.most += most
	}
	switch {
	case fixed:
		s.sizes, s.keepsSize = sizes{}, true
	case elastic:
		s.sizes = all
	}
}

// resize matches the message of condition Resized: the old and the new number of pods, and on whose behalf.
var resize = regexp.MustCompile(`from (\d+) to (\d+) pods(.*)$`)

// noteResized adds, for an admitted job, its last resize since its admission to s.partial.
func (s *subject) noteResized(now time.Time) {
	c := condition(s.workload, muster.ResizedCondition)
	if c == nil || s.workload.Status.Admission == nil || !workload.IsAdmitted(s.workload) ||
		c.LastTransitionTime.Before(&condition(s.workload, kueue.WorkloadAdmitted).LastTransitionTime) {
		return
	}
	words := resize.FindStringSubmatch(c.Message)
	if words == nil {
		return
	}
	s.partial = join(strings.ToLower(c.Reason)+" "+words[1]+" -> "+words[2]+words[3]+" "+
		Duration(now.Sub(c.LastTransitionTime.Time))+" ago", s.partial)
}
