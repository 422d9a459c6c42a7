package view

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	kueue "github.com/musterhq/muster/api/kueue/v1beta1"
)

// Preemption is why a job that waits was stopped last.
type Preemption struct {
	// By is the job that it was stopped for, as namespace/kind/name; empty for one that is gone, or that the reader does
	// not see.
	By string `json:"by,omitempty"`
	// Right is the reason of the condition Preempted: by which rule of the queue.
	Right string      `json:"right"`
	At    metav1.Time `json:"at"`
}

// rights are the rules by which a job may be stopped, in words.
var rights = map[string]string{
	kueue.InClusterQueueReason:                "it comes first in the ClusterQueue",
	kueue.InCohortReclamationReason:           "its queue took back quota that it had lent",
	kueue.InCohortReclaimWhileBorrowingReason: "its priority is higher, and its queue may preempt while it borrows",
	kueue.InCohortFairSharingReason:           "its queue had less than its fair share",
}

// String says by whom, when and by which right.
func (p *Preemption) String() string {
	by := p.By
	if by == "" {
		by = "a job that is gone or that you do not see here"
	}
	text := "by " + by + " at " + p.At.UTC().Format("2006-01-02 15:04:05 UTC")
	if right := rights[p.Right]; right != "" {
		text += ": " + right
	}
	return text
}

// preemption returns the last preemption of a job that has not been admitted since, nil if it was stopped for another
// reason or not at all.
func (s *subject) preemption() *Preemption {
	evicted, preempted := condition(s.workload, kueue.WorkloadEvicted), condition(s.workload, kueue.WorkloadPreempted)
	if evicted == nil || evicted.Status != metav1.ConditionTrue || evicted.Reason != kueue.WorkloadEvictedByPreemption ||
		preempted == nil || preempted.Status != metav1.ConditionTrue {
		return nil
	}
	return &Preemption{By: s.preemptor(preempted.Message), Right: preempted.Reason, At: evicted.LastTransitionTime}
}

// preemptorPattern matches how the message of a preemption names the preemptor by UIDs, and preemptorName how it names
// one of the same namespace.
var (
	preemptorPattern = regexp.MustCompile(`a workload \(UID: ([^,)]*), JobUID: ([^)]*)\)`)
	preemptorName    = regexp.MustCompile(`; preemptor: (\S+)$`)
)

// preemptor returns the full title of the job that the message of a preemption names, "" if the reader does not see it.
func (s *subject) preemptor(message string) string {
	if uids := preemptorPattern.FindStringSubmatch(message); uids != nil {
		for _, uid := range []string{uids[2], uids[1]} {
			if title := s.titles[types.UID(uid)]; title != "" && uid != "" {
				return title
			}
		}
	}
	if named := preemptorName.FindStringSubmatch(message); named != nil {
		return s.meta.Namespace + "/" + named[1]
	}
	return ""
}

// withTitles replaces the UIDs of another Workload in a message by the title of its job, if the reader may see that.
func (s *subject) withTitles(message string) string {
	by := s.preemptor(message)
	if by == "" {
		by = "a job that is gone or that you do not see here"
	}
	text := preemptorPattern.ReplaceAllLiteralString(message, by)
	if text == message {
		return message
	}
	text, _, _ = strings.Cut(text, "; preemptor: ")
	return text
}
