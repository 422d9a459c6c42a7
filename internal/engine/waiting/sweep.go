package waiting

// A pass first finds the heads of a family's queues, and blocks the hopeless classes that come before them. With many
// classes that takes several passes: a sweep. If classes were made ready meanwhile for whatever is released, the sweep
// would begin anew each time, and where something is released before each pass, no head would ever be served. So what
// is released during a sweep makes no class ready before its end. A sweep ends once all heads are known and some, or
// all, have been served.
//
// A class that the sweep has passed can therefore lose what is released to one behind it in its queue. That happens
// only if more classes are hopeless than a pass can evaluate.

// enoughServed is how many heads are served after a sweep of several passes before another one may begin. If it were
// one, a queue whose workloads come first in order could keep all others from being served.
const enoughServed = 20

// IsSweeping reports whether a sweep is not over.
func (f *Family) IsSweeping() bool { return f.sweeping }

// Swept notes what a pass has done: whether it was cut before all heads were known, how many of them it served, and
// whether some are left.
func (f *Family) Swept(cut bool, served int, left bool) {
	f.sweeping = served < enoughServed && (cut || f.sweeping && left)
}

// Cut notes that a pass was cut before all heads were known, and served none.
func (f *Family) Cut() { f.sweeping = true }
