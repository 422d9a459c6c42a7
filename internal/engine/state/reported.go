package state

import (
	"strings"

	"github.com/musterhq/muster/internal/engine/model"
	"github.com/musterhq/muster/internal/engine/reason"
)

// isHead reports whether the class waits behind no other, in a queue where some do.
func (c *Class) isHead() bool {
	return c.Queue.Waits.Head() == &c.Class
}

// ReportAgainIf makes those unreported to which another reason than this one was reported, for which the class is not
// evaluated.
func (c *Class) ReportAgainIf(why reason.Reason) {
	switch {
	case !c.IsBlocked() && c.Why.Code.ToFix():
		c.ForgetReason()
	case c.OtherCode != why.Code:
		c.ReportAgain()
	}
}

// ForgetReason makes all workloads of the class unreported, whatever was reported to them.
func (c *Class) ForgetReason() {
	c.Unreported, c.Otherwise, c.Why = c.Unreported[:0], nil, reason.Reason{}
	for _, r := range c.Workloads() {
		c.Unreported = append(c.Unreported, r.Key)
	}
}

// ReportAgain makes those unreported to which another reason was reported.
func (c *Class) ReportAgain() {
	c.Unreported, c.Otherwise = append(c.Unreported, c.Otherwise...), nil
}

// saysBehind reports whether the message says that a workload waits behind a head of the queue.
func (cq *ClusterQueue) saysBehind(message string) bool {
	return cq.Strategy == model.Strict && strings.HasPrefix(message, behindText(cq)) || message == WhyBehind(cq).Message()
}

// stuckHead returns the code of the head of a strict queue that is never admitted with the present quota and nodes,
// else None.
func (cq *ClusterQueue) stuckHead() reason.Code {
	if head := ClassOf(cq.Waits.Head()); cq.Strategy == model.Strict && head != nil && head.Why.Code.Never() {
		return head.Why.Code
	}
	return reason.None
}

// WhyBehind is the reason of workloads that wait behind a head of their queue.
func WhyBehind(q *ClusterQueue) reason.Reason {
	if code := q.stuckHead(); code != reason.None {
		return WhyBehindStuck(q, code)
	}
	return reason.Reason{Code: reason.WaitingForQuota, Detail: behindText(q)}
}

// behindText begins the message of all that wait behind the head of a strict queue.
func behindText(q *ClusterQueue) string {
	return "waits behind the head of ClusterQueue " + q.Name + ", which is StrictFIFO"
}

// WhyBehindStuck is WhyBehind in a strict queue whose head, for the reason of the code, is never admitted.
func WhyBehindStuck(q *ClusterQueue, head reason.Code) reason.Reason {
	with := map[reason.Code]string{reason.ExceedsMaxQuota: "this quota", reason.ExceedsNodes: "these nodes"}[head]
	return reason.Reason{Code: reason.WaitingForQuota,
		Detail: behindText(q) + "; the head never starts with " + with + " (" + string(head) +
			"): it must be changed or deleted, or there must be more"}
}

// BlameChanged reports whether the reason names another cause than the one that was reported, with the same code.
func (w *Workload) BlameChanged(why reason.Reason) bool {
	if why.Code.Actionable() {
		return w.Reported != "" && w.Reported != why.Message()
	}
	return why.Code == w.ReportedWhy.Code && !why.SameBlame(w.ReportedWhy)
}

// BlamesHead reports whether the workload was told that it waits behind a head of its queue, and is one itself now. The
// code of the reason is the same, but the message would hide what it lacks.
func (w *Workload) BlamesHead() bool {
	c := w.Class
	return c != nil && c.isHead() && c.Head().Key == w.Key && c.Queue.saysBehind(w.Reported) &&
		w.Why.Message() != w.Reported
}
