package validation

import "strings"

func trainingJobSchemaRules() []rule {
	of := "TrainingJob"
	run := func(fields string) edits { return edits{"spec>runPolicy": "yaml:{" + fields + "}"} }
	return []rule{
		{of, "runPolicy is given", inSchema, "spec.runPolicy: Required value",
			[]attempt{{what: "none", change: edits{"spec>runPolicy": nil}}},
			[]attempt{{what: "empty", change: run("")}}},
		{of, "replicaSpecs is given", inSchema, "spec.replicaSpecs: Required value",
			[]attempt{{what: "none", change: edits{"spec>replicaSpecs": nil}}},
			[]attempt{{what: "plain"}}},
		{of, "the template has a spec with containers", inSchema, "Required value",
			[]attempt{
				{what: "no spec", change: edits{"spec>replicaSpecs>template": map[string]any{}}},
				{what: "no containers", change: edits{"spec>replicaSpecs>template>spec>containers": nil}},
			},
			[]attempt{{what: "plain"}}},
		{of, "sizes are at most 10,000", inSchema, "should be less than or equal to 10000",
			[]attempt{
				{what: "maxSize 10,001", change: edits{"spec>maxSize": 10001}},
				{what: "minSize 10,001", change: edits{"spec>minSize": 10001}},
			},
			[]attempt{
				{what: "10,000", change: edits{"spec>maxSize": 10000}},
				{what: "sizes that make no sense: they are a stage", change: edits{"spec>maxSize": 0, "spec>minSize": -1}},
				{what: "minSize above maxSize: that too", change: edits{"spec>minSize": 5}},
			}},
		{of, "the framework is pytorch or generic", inSchema, "Unsupported value",
			[]attempt{{what: "jax", change: edits{"spec>framework": "jax"}}},
			[]attempt{{what: "generic", change: edits{"spec>framework": "generic"}}}},
		{of, "the dataset is the name of a claim", inSchema, "spec.dataset in body should match",
			[]attempt{{what: "a path", change: edits{"spec>dataset": "../x"}}},
			[]attempt{{what: "a name", change: edits{"spec>dataset": "imagenet"}},
				{what: "none", change: edits{"spec>dataset": ""}}}},
		{of, "replicas is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>replicaSpecs>replicas": -1}}},
			[]attempt{{what: "0, which does not count", change: edits{"spec>replicaSpecs>replicas": 0}}}},
		{of, "the restart policy is Always, OnFailure, Never or ExitCode", inSchema, "Unsupported value",
			[]attempt{{what: "Sometimes", change: edits{"spec>replicaSpecs>restartPolicy": "Sometimes"}}},
			[]attempt{{what: "ExitCode", change: edits{"spec>replicaSpecs>restartPolicy": "ExitCode"}}}},
		{of, "cleanPodPolicy is None, Running or All", inSchema, "Unsupported value",
			[]attempt{{what: "Some", change: run("cleanPodPolicy: Some")}},
			[]attempt{{what: "Running", change: run("cleanPodPolicy: Running")},
				{what: "empty, which is All", change: run(`cleanPodPolicy: ""`)}}},
		{of, "ttlSecondsAfterFinished is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: run("ttlSecondsAfterFinished: -1")}},
			[]attempt{{what: "0", change: run("ttlSecondsAfterFinished: 0")}}},
		{of, "activeDeadlineSeconds is positive", inSchema, "should be greater than or equal to 1",
			[]attempt{{what: "0", change: run("activeDeadlineSeconds: 0")}},
			[]attempt{{what: "1", change: run("activeDeadlineSeconds: 1")}}},
		{of, "backoffLimit is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: run("backoffLimit: -1")}},
			[]attempt{{what: "0", change: run("backoffLimit: 0")}}},
		{of, "queue is a DNS subdomain", inSchema, "spec.runPolicy.schedulingPolicy.queue in body should match",
			[]attempt{{what: "capitals", change: run("schedulingPolicy: {queue: Q}")}},
			[]attempt{{what: "small letters",
				change: run("schedulingPolicy: {queue: q, minAvailable: 2, priorityClass: p, scheduleTimeoutSeconds: 5, minResources: {cpu: 1}}")}}},
		{of, "managedBy has at most 63 characters", inSchema, "may not be more than 63",
			[]attempt{{what: "64", change: run("managedBy: " + strings.Repeat("a", 64))}},
			[]attempt{{what: "63", change: run("managedBy: " + strings.Repeat("a", 63))}}},
	}
}

func trainingJobRules() []rule {
	of := "TrainingJob"
	labels := func(key, value string) edits { return edits{"metadata>labels": map[string]any{key: value}} }
	containers := func(list string) edits {
		return edits{"spec>injectLattice": true, "spec>replicaSpecs>template>spec>containers": "yaml:" + list}
	}
	long := strings.Repeat("a", 54) // with -worker-3 that is 63
	return []rule{
		{of, "names of its pods have at most 63 characters", inCEL,
			"the name of the TrainingJob is too long: the names of its pods would exceed 63 characters",
			[]attempt{
				{what: "64", change: edits{"metadata>name": long + "b"}},
				{what: "64, with eleven pods", change: edits{"metadata>name": long, "spec>maxSize": 11}},
				{what: "64, with eleven pods by minSize alone",
					change: edits{"metadata>name": long, "spec>maxSize": nil, "spec>minSize": 11}},
			},
			[]attempt{{what: "63", change: edits{"metadata>name": long}}}},
		{of, "its name is a DNS label", inCEL, "the name of a TrainingJob begins the names of its Services",
			[]attempt{{what: "a digit first", change: edits{"metadata>name": "1-job"}},
				{what: "a dot", change: edits{"metadata>name": "a.b"}}},
			[]attempt{{what: "a letter first", change: edits{"metadata>name": "job-1"}}}},
		{of, "it has a container", inCEL, "must have a container",
			[]attempt{{what: "none", change: edits{"spec>replicaSpecs>template>spec>containers": []any{}}}},
			[]attempt{{what: "one"}}},
		{of, "with injectLattice the command is explicit", inCEL, "injectLattice needs an explicit command",
			[]attempt{
				{what: "none", change: containers("[{name: c}]")},
				{what: "args alone", change: containers("[{name: c, args: [x]}]")},
				{what: "in the second", change: containers("[{name: c}, {name: d, command: [x]}]")},
				{what: "not in that named trainingjob", change: containers("[{name: c, command: [x]}, {name: trainingjob}]")},
				{what: "later", before: edits{}, change: edits{"spec>injectLattice": true}},
			},
			[]attempt{
				{what: "in the first", change: containers("[{name: c, command: [x]}, {name: d}]")},
				{what: "in that named trainingjob", change: containers("[{name: c}, {name: trainingjob, command: [x]}]")},
				{what: "without injectLattice", change: edits{"spec>injectLattice": false}},
			}},
		{of, "managedBy is fixed", inCEL, "field is immutable",
			[]attempt{
				{what: "another", before: edits{"spec>runPolicy>managedBy": "a.com/b"},
					change: edits{"spec>runPolicy>managedBy": "a.com/c"}},
				{what: "one, late", before: edits{}, change: edits{"spec>runPolicy>managedBy": "a.com/c"}},
			},
			[]attempt{
				{what: "the same", before: edits{"spec>runPolicy>managedBy": "a.com/b"},
					change: edits{"spec>runPolicy>suspend": true}},
				{what: "other sizes and priority", before: edits{},
					change: edits{"spec>minSize": 1, "spec>maxSize": 8, "spec>priority": -3}},
			}},
		{of, "the label queue-name is the name of a queue", inTrainLabels,
			"the label kueue.x-k8s.io/queue-name must be the name of a queue",
			[]attempt{{what: "capitals", change: labels("kueue.x-k8s.io/queue-name", "Q")}},
			[]attempt{{what: "small letters", change: labels("kueue.x-k8s.io/queue-name", "q")}}},
		{of, "the label priority-class is the name of a class", inTrainLabels,
			"the label kueue.x-k8s.io/priority-class must be the name of a WorkloadPriorityClass",
			[]attempt{{what: "capitals", change: labels("kueue.x-k8s.io/priority-class", "P")}},
			[]attempt{{what: "small letters", change: labels("kueue.x-k8s.io/priority-class", "p")}}},
		{of, "the label max-exec-time-seconds is a number of seconds", inTrainLabels,
			"the label kueue.x-k8s.io/max-exec-time-seconds must be a number from 1 to 999999999",
			[]attempt{{what: "0", change: labels("kueue.x-k8s.io/max-exec-time-seconds", "0")}},
			[]attempt{{what: "1", change: labels("kueue.x-k8s.io/max-exec-time-seconds", "1")}}},
	}
}
