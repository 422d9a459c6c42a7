package genericjob

// hold deletes the unfinished pods of a job that may not run. Finished pods stay: they hold no
// resources, and their replicas do not run again.
func (p *planner) hold() {
	p.resume()
	p.plan.DeletePods(p.roster.Pods(true))
}
