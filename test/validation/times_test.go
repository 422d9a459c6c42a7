package validation

// timeRules are about how long jobs take, and may take.
func timeRules() []rule {
	rules := []rule{workloadTimesRule()}
	for _, kind := range []string{"ClusterQueue", "LocalQueue"} {
		for _, name := range []string{"max-duration", "default-duration"} {
			rules = append(rules, queueTimeRule(kind, name))
		}
	}
	for _, kind := range []string{"Job", "JobSet", "GenericJob", "VCJob", "LatticeJob", "TrainingJob", "Workload"} {
		rules = append(rules, estimateRule(kind))
	}
	return rules
}

// annotated sets an annotation of Muster's.
func annotated(name, value string) edits {
	return edits{"metadata>annotations": map[string]any{"muster.dev/" + name: value}}
}

func queueTimeRule(kind, name string) rule {
	return rule{kind, "the annotation " + name + " is a duration of at most 10 years", inQueueTimes,
		"the annotation muster.dev/" + name + " must be a duration such as 1d12h",
		[]attempt{
			{what: "a word", change: annotated(name, "soon")},
			{what: "units in another order", change: annotated(name, "1h1d")},
			{what: "more than 10 years", change: annotated(name, "10y1ms")},
			{what: "more than 10 years in weeks", change: annotated(name, "600w")},
			{what: "changed", before: edits{}, change: annotated(name, "-1h")},
		},
		[]attempt{
			{what: "days and hours", change: annotated(name, "1d12h")},
			{what: "all units", change: annotated(name, "1y2w3d4h5m6s7ms")},
			{what: "10 years", change: annotated(name, "10y")},
			{what: "0", change: annotated(name, "0")},
		}}
}

func estimateRule(kind string) rule {
	const name = "expected-duration"
	return rule{kind, "the annotation expected-duration is a duration above zero, of at most 10 years", inEstimate,
		"the annotation muster.dev/expected-duration must be a duration such as 1h30m",
		[]attempt{
			{what: "a word", change: annotated(name, "soon")},
			{what: "days", change: annotated(name, "1d")},
			{what: "no time", change: annotated(name, "0s")},
			{what: "more than 10 years", change: annotated(name, "87601h")},
			{what: "changed", before: edits{}, change: annotated(name, "-1h")},
		},
		[]attempt{
			{what: "hours and minutes", change: annotated(name, "1h30m")},
			{what: "a fraction", change: annotated(name, "1.5h")},
			{what: "10 years", change: annotated(name, "87600h")},
			{what: "nothing", change: annotated(name, "")},
		}}
}

func workloadTimesRule() rule {
	limit, end := annotated("job-limit", "1h0m0s"), annotated("expected-end", "2026-01-01T00:00:00Z")
	return rule{"Workload", "only the operator says when a job is stopped by its API, and when it expects to end", inTimes,
		"is for system:serviceaccount:muster-system:muster-operator to say",
		[]attempt{
			{what: "a new limit", change: limit, user: reporter},
			{what: "a new end", change: end, user: reporter},
			{what: "a new progress", change: annotated("reported-progress", "40% at 2026-01-01T00:00:00Z"), user: reporter},
			{what: "a limit of one that is there", before: edits{}, change: limit, user: reporter},
			{what: "an end of one that is there", before: edits{}, change: end, user: reporter},
			{what: "no end any more", before: end, change: edits{"metadata>annotations": nil}, user: reporter},
		},
		[]attempt{
			{what: "by the operator", change: end, user: operator},
			{what: "by who may mend it", change: limit, user: mender},
			{what: "another change of one that says it", before: end, change: edits{"spec>active": false}, user: reporter},
			{what: "a new one without", change: edits{}, user: reporter},
		}}
}
