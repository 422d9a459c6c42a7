package validation

func jobRules() []rule {
	of := "Job"
	const queue = "kueue.x-k8s.io/queue-name"
	label := func(key, value string) edits { return edits{"metadata>labels": map[string]any{key: value}} }
	annotation := func(value string) edits { return edits{"metadata>annotations": map[string]any{queue: value}} }
	suspended := edits{"spec>suspend": true}
	ofPods := func(keys ...string) edits {
		labels := map[string]any{}
		for _, key := range keys {
			labels[key] = "w"
		}
		return edits{"spec>template>metadata>labels": labels, "spec>parallelism": 2}
	}
	ofJobSet := ofPods("jobset.sigs.k8s.io/jobset-name", "kueue.x-k8s.io/podset")
	more := edits{"spec>parallelism": 3}
	const asked, granted = "muster.dev/asked-pods", "muster.dev/granted-pods"
	quotaFor := func(annotations map[string]any) edits {
		return edits{"spec>parallelism": 2, "spec>completions": 9, "metadata>annotations": annotations}
	}
	// Without the number of pods that it asked for, the policy muster-job-size-limit puts nothing back.
	running := func(pods string) edits { return quotaFor(map[string]any{granted: pods}) }
	indexed := func(completions int, done string) edits {
		return running("4").with(edits{"spec>completionMode": "Indexed", "spec>completions": completions,
			"status>completedIndexes": done})
	}
	const mark = "muster.dev/queued"
	marked := func(value string) edits { return edits{"metadata>annotations": map[string]any{mark: value}} }
	ownedByJobSet :=
		edits{"metadata>ownerReferences": "yaml:[{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: j, uid: u, controller: true}]"}
	return []rule{
		{of, "a running Job has no more pods than it was granted", inJobSize,
			"pods that it asked for, and cannot have more while it runs: set spec.parallelism to no more than 2, or submit another Job for more",
			[]attempt{
				{what: "more pods", before: running("2"), change: more, user: maker},
				{what: "more pods than it asked for", before: quotaFor(map[string]any{granted: "2", asked: "2"}),
					change: more, user: maker},
				{what: "more pods than it asked for, of which it was granted some",
					before: quotaFor(map[string]any{granted: "2", asked: "3"}), change: edits{"spec>parallelism": 4}, user: maker},
				{what: "more pods than it asked for, of one that does not say what it was granted",
					before: quotaFor(map[string]any{asked: "2"}), change: more, user: maker},
				{what: "more pods, without completions", before: running("2").with(edits{"spec>completions": nil}),
					change: more, user: maker},
				{what: "more pods, after it was paused", before: running("2").with(edits{"spec>parallelism": 0}),
					change: more, user: maker},
				{what: "more completions",
					before: running("2").with(edits{"spec>completionMode": "Indexed", "spec>completions": 2}),
					change: edits{"spec>parallelism": 3, "spec>completions": 3}, user: maker},
			},
			[]attempt{
				{what: "more pods, by the operator", before: running("2"), change: more, user: operator},
				{what: "more pods, by an administrator", before: running("2"), change: more},
				{what: "as many as it was granted", before: running("3"), change: more, user: maker},
				{what: "as many as it was granted, after it was paused", before: running("3").with(edits{"spec>parallelism": 0}),
					change: more, user: maker},
				{what: "as many as it asked for, which are put back", before: quotaFor(map[string]any{granted: "2", asked: "3"}),
					change: more, user: maker},
				{what: "as many as it asked for, of one that does not say what it was granted",
					before: quotaFor(map[string]any{asked: "3"}), change: more, user: maker},
				{what: "more than are left to complete", before: running("2").with(edits{"spec>completions": 2}),
					change: more, user: maker},
				{what: "fewer pods, of more than it was granted", before: running("1").with(edits{"spec>parallelism": 4}),
					change: more, user: maker},
				{what: "more pods while it is suspended", before: running("2").with(suspended), change: more, user: maker},
				{what: "more pods as it is suspended", before: running("2"), change: more.with(suspended), user: maker},
				{what: "more pods of one that no queue has started", before: running(""), change: more, user: maker},
			}},
		{of, "a running Job runs no index again that is done", inJobSize,
			"an index of the Job is done, and its quota may be in use elsewhere: leave spec.completions at 3",
			[]attempt{
				{what: "fewer completions than an index that is done", before: indexed(3, "0,2"),
					change: edits{"spec>completions": 2}, user: maker},
				{what: "more completions", before: indexed(3, "1"),
					change: edits{"spec>parallelism": 4, "spec>completions": 4}, user: maker},
			},
			[]attempt{
				{what: "by the operator", before: indexed(3, "0,2"), change: edits{"spec>completions": 2}, user: operator},
				{what: "fewer completions, more than the indexes that are done", before: indexed(3, "0-1"),
					change: edits{"spec>completions": 2}, user: maker},
				{what: "fewer pods", before: indexed(3, "0,2"), change: edits{"spec>parallelism": 1}, user: maker},
			}},
		{of, "only the operator says how many pods a running Job asked for and was granted", inJobSize,
			"the annotations muster.dev/asked-pods and muster.dev/granted-pods are for system:serviceaccount:muster-system:muster-operator to say",
			[]attempt{
				{what: "another number asked for", before: quotaFor(map[string]any{asked: "2"}),
					change: edits{"metadata>annotations": map[string]any{asked: "9"}}, user: maker},
				{what: "another number granted", before: running("2"),
					change: edits{"metadata>annotations": map[string]any{granted: "9"}}, user: maker},
				{what: "none", before: running("2"), change: edits{"metadata>annotations": nil}, user: maker},
			},
			[]attempt{
				{what: "by the operator", before: running("2"), change: edits{"metadata>annotations": nil}, user: operator},
				{what: "another annotation", before: running("2"),
					change: edits{"metadata>annotations": map[string]any{granted: "2", "a": "b"}}, user: maker},
			}},
		{of, "only the operator marks which Jobs are queued, and starts those", inJobQueued,
			"the annotations muster.dev/queued and muster.dev/before-admission of a Job are for system:serviceaccount:muster-system:muster-operator to set",
			[]attempt{
				{what: "a Job of a queued JobSet, to be", change: marked("by-owner"), user: maker},
				{what: "one that queues no more", before: marked("true").with(suspended),
					change: edits{"metadata>annotations": nil}, user: maker},
				{what: "one that never did", before: marked("true"), change: marked("false"), user: maker},
				{what: "one that queues", before: suspended, change: marked("true"), user: maker},
				{what: "what its start replaced",
					before: edits{"metadata>annotations": map[string]any{"muster.dev/before-admission": "{}"}},
					change: edits{"metadata>annotations": nil}, user: maker},
			},
			[]attempt{
				{what: "by the operator", before: marked("true"), change: edits{"metadata>annotations": nil}, user: operator},
				{what: "a Job of a queued JobSet, by the operator", change: marked("by-owner"), user: operator},
				{what: "by an administrator", before: marked("true"), change: marked("false")},
				{what: "a copy of a queued Job", change: marked("true").with(suspended), user: maker},
				{what: "another annotation", before: marked("true").with(suspended),
					change: edits{"metadata>annotations": map[string]any{mark: "true", "a": "b"}}, user: maker},
			}},
		{of, "only the controller of JobSets makes a JobSet the controller of a Job", inJobQueued,
			"only the controller of JobSets, which may update jobsets/status, makes a JobSet the controller of a Job",
			[]attempt{
				{what: "later", before: edits{}, change: ownedByJobSet, user: maker},
				{what: "a second one",
					before: edits{"metadata>ownerReferences": "yaml:[{apiVersion: batch/v1, kind: CronJob, name: c, uid: v}]"},
					change: ownedByJobSet, user: editor},
			},
			[]attempt{
				{what: "by the operator", before: edits{}, change: ownedByJobSet, user: operator},
				{what: "by an administrator", before: edits{}, change: ownedByJobSet},
				{what: "one that queues for itself", before: marked("true").with(suspended), change: ownedByJobSet, user: maker},
				{what: "not as its controller", before: edits{},
					change: edits{
						"metadata>ownerReferences": "yaml:[{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: j, uid: u}]"},
					user: maker},
				{what: "a JobSet of another API", before: edits{},
					change: edits{
						"metadata>ownerReferences": "yaml:[{apiVersion: example.com/v1, kind: JobSet, name: j, uid: u, controller: true}]"},
					user: maker},
			}},
		{of, "a Job of a queued JobSet keeps it as its controller", inJobQueued,
			"the JobSet that a Job was created for stays its controller: only system:serviceaccount:muster-system:muster-operator",
			[]attempt{
				{what: "none", before: marked("by-owner").with(ownedByJobSet),
					change: edits{"metadata>ownerReferences": nil}, user: maker},
				{what: "another JobSet", before: marked("by-owner").with(ownedByJobSet),
					change: edits{"metadata>ownerReferences>0>uid": "v"}, user: maker},
				{what: "a JobSet of another API", before: marked("by-owner").with(ownedByJobSet),
					change: edits{"metadata>ownerReferences>0>apiVersion": "example.com/v1"}, user: editor},
				{what: "another kind", before: marked("by-owner").with(ownedByJobSet),
					change: edits{
						"metadata>ownerReferences": "yaml:[{apiVersion: batch/v1, kind: CronJob, name: c, uid: v, controller: true}]"},
					user: maker},
				{what: "an owner that does not control it", before: marked("by-owner").with(ownedByJobSet),
					change: edits{"metadata>ownerReferences>0>controller": false}, user: maker},
				{what: "one that it has lost", before: marked("by-owner"),
					change: edits{
						"metadata>ownerReferences": "yaml:[{apiVersion: batch/v1, kind: CronJob, name: c, uid: v, controller: true}]"},
					user: maker},
			},
			[]attempt{
				{what: "by the operator", before: marked("by-owner").with(ownedByJobSet),
					change: edits{"metadata>ownerReferences": nil}, user: operator},
				{what: "by the garbage collector", before: marked("by-owner").with(ownedByJobSet),
					change: edits{"metadata>ownerReferences": nil},
					user:   "system:serviceaccount:kube-system:generic-garbage-collector"},
				{what: "by an administrator", before: marked("by-owner").with(ownedByJobSet),
					change: edits{"metadata>ownerReferences": nil}},
				{what: "a Job of a JobSet without a queue", before: ownedByJobSet,
					change: edits{"metadata>ownerReferences": nil}, user: maker},
				{what: "a further owner", before: marked("by-owner").with(ownedByJobSet), user: maker,
					change: edits{"metadata>ownerReferences": "yaml:[{apiVersion: v1, kind: ConfigMap, name: c, uid: v}, " +
						"{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, name: j, uid: u, controller: true}]"}},
				{what: "that the controller is not waited for", before: marked("by-owner").with(ownedByJobSet),
					change: edits{"metadata>ownerReferences>0>blockOwnerDeletion": false}, user: maker},
			}},
		{of, "a Job of a queued JobSet runs no more pods than the queue admits", inSetJobSize,
			"how many pods a Job of a queued JobSet runs, and when, is for system:serviceaccount:muster-system:muster-operator to say",
			[]attempt{
				{what: "more pods", before: ofJobSet, change: more, user: maker},
				{what: "more pods of one that is the JobSet's no more", before: ofJobSet,
					change: more.with(edits{"metadata>ownerReferences": nil}), user: maker},
				{what: "more pods of one with the mark alone", before: marked("by-owner").with(edits{"spec>parallelism": 2}),
					change: more, user: maker},
				{what: "fewer completions", before: ofJobSet.with(edits{"spec>completionMode": "Indexed", "spec>completions": 2}),
					change: edits{"spec>parallelism": 1, "spec>completions": 1}, user: maker},
				{what: "one with the mark alone is started", before: marked("by-owner").with(suspended),
					change: edits{"spec>suspend": false}, user: maker},
				{what: "one that is stopped is started", before: ofJobSet.with(suspended),
					change: edits{"spec>suspend": false}, user: maker},
			},
			[]attempt{
				{what: "more pods, by the operator", before: ofJobSet, change: more, user: operator},
				{what: "more pods, by an administrator", before: ofJobSet, change: more},
				{what: "fewer pods", before: ofJobSet, change: edits{"spec>parallelism": 1}, user: maker},
				{what: "more pods of a JobSet without a queue", before: ofPods("jobset.sigs.k8s.io/jobset-name"),
					change: more, user: maker},
				{what: "more pods of a Job", before: ofPods("kueue.x-k8s.io/podset"), change: more, user: maker},
			}},
		{of, "the label queue-name is the name of a queue", inJobLabels,
			"the label kueue.x-k8s.io/queue-name must be the name of a queue",
			[]attempt{
				{what: "capitals", change: label(queue, "Team_A")},
				{what: "capitals, later", before: suspended, change: label(queue, "Team_A")},
			},
			[]attempt{{what: "a name", change: label(queue, "team-a.gpu")}, {what: "none", change: label(queue, "")}}},
		{of, "the label queue-name is added before a Job runs", inJobLabels,
			"the label kueue.x-k8s.io/queue-name cannot be added to a Job that runs without it: set spec.suspend to true first, or in the same change",
			[]attempt{{what: "to one that runs", before: edits{}, change: label(queue, "q")}},
			[]attempt{
				{what: "to one that is suspended", before: suspended, change: label(queue, "q")},
				{what: "to one that is suspended by the same change", before: edits{}, change: label(queue, "q").with(suspended)},
				{what: "to one that a queue has started",
					before: edits{"metadata>annotations": map[string]any{"muster.dev/before-admission": "{}"}},
					change: label(queue, "q")},
				{what: "to one that moves to another queue", before: label(queue, "q"), change: label(queue, "r")},
				{what: "to one that names its queue by the annotation", before: annotation("q"), change: label(queue, "q")},
			}},
		{of, "the annotation queue-name is the name of a queue", inJobLabels,
			"the annotation kueue.x-k8s.io/queue-name must be the name of a queue",
			[]attempt{
				{what: "capitals", change: annotation("Team_A")},
				{what: "capitals, later", before: suspended, change: annotation("Team_A")},
			},
			[]attempt{{what: "a name", change: annotation("team-a.gpu")}, {what: "none", change: annotation("")}}},
		{of, "the annotation queue-name is added before a Job runs", inJobLabels,
			"the annotation kueue.x-k8s.io/queue-name cannot be added to a Job that runs without it: set spec.suspend to true first, or in the same change",
			[]attempt{{what: "to one that runs", before: edits{}, change: annotation("q")}},
			[]attempt{
				{what: "to one that is suspended", before: suspended, change: annotation("q")},
				{what: "to one that is suspended by the same change", before: edits{}, change: annotation("q").with(suspended)},
				{what: "to one that a queue has started",
					before: edits{"metadata>annotations": map[string]any{"muster.dev/before-admission": "{}"}},
					change: annotation("q")},
				{what: "to one that has the label", before: label(queue, "q"), change: annotation("q")},
			}},
		{of, "the label priority-class is the name of a class", inJobLabels,
			"the label kueue.x-k8s.io/priority-class must be the name of a WorkloadPriorityClass",
			[]attempt{{what: "capitals", change: label("kueue.x-k8s.io/priority-class", "High")}},
			[]attempt{{what: "a name", change: label("kueue.x-k8s.io/priority-class", "high")}}},
		{of, "the label max-exec-time-seconds is a number of seconds", inJobLabels,
			"the label kueue.x-k8s.io/max-exec-time-seconds must be a number from 1 to 999999999",
			[]attempt{
				{what: "0", change: label("kueue.x-k8s.io/max-exec-time-seconds", "0")},
				{what: "an hour", change: label("kueue.x-k8s.io/max-exec-time-seconds", "1h")},
			},
			[]attempt{{what: "60", change: label("kueue.x-k8s.io/max-exec-time-seconds", "60")}}},
	}
}

// annotationWarnings are about annotations of Kueue that have no effect here.
func annotationWarnings() (out []rule) {
	for kind, place := range map[string]place{"Job": inJobAnnotations, "JobSet": inSetAnnotations} {
		set := func(key string) edits { return edits{"metadata>annotations": map[string]any{key: "true"}} }
		out = append(out, rule{kind, "Muster reads its annotations of kueue.x-k8s.io", place,
			"Muster does not read this annotation of a " + kind + ", and it has no effect: ",
			[]attempt{
				{what: "elastic-job", change: set("kueue.x-k8s.io/elastic-job")},
				{what: "one of its pod template", change: set("kueue.x-k8s.io/podset-required-topology")},
				{what: "later", before: edits{}, change: set("kueue.x-k8s.io/elastic-job")},
			},
			[]attempt{
				{what: "one that it reads", change: set("kueue.x-k8s.io/admission-gated-by")},
				{what: "another API's", change: set("example.com/elastic-job")},
				{what: "one that was there before", before: set("kueue.x-k8s.io/elastic-job"),
					change: edits{"metadata>annotations": map[string]any{"kueue.x-k8s.io/elastic-job": "true",
						"example.com/note": "a"}}},
			}})
		template := map[string]string{"Job": "spec>template>metadata>annotations",
			"JobSet": workers + "template>spec>template>metadata>annotations"}[kind]
		ofPods := func(keys ...string) edits {
			annotations := map[string]any{}
			for _, key := range keys {
				annotations[key] = "a"
			}
			return edits{template: annotations}
		}
		suspended := edits{"spec>suspend": true}
		out = append(out, rule{kind, "Muster reads the annotations of kueue.x-k8s.io of its pod templates", place,
			"Muster does not read this annotation of a pod template, and it has no effect: kueue.x-k8s.io/",
			[]attempt{
				{what: "a feature of Kueue", change: ofPods("kueue.x-k8s.io/safe-to-forcefully-delete")},
				{what: "a misspelled one beside others",
					change: ofPods("kueue.x-k8s.io/podset-required-topolgy", "kueue.x-k8s.io/podset-group-name")},
				{what: "later", before: suspended, change: ofPods("kueue.x-k8s.io/safe-to-forcefully-delete")},
			},
			[]attempt{
				{what: "those that it reads",
					change: ofPods("kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology",
						"kueue.x-k8s.io/podset-unconstrained-topology", "kueue.x-k8s.io/podset-slice-required-topology",
						"kueue.x-k8s.io/podset-slice-size", "kueue.x-k8s.io/podset-slice-required-topology-constraints",
						"kueue.x-k8s.io/podset-group-name")},
				{what: "one that is set at admission", before: suspended, change: ofPods("kueue.x-k8s.io/workload")},
				{what: "another API's", change: ofPods("example.com/safe-to-forcefully-delete")},
				{what: "one that was there before", before: ofPods("kueue.x-k8s.io/safe-to-forcefully-delete").with(suspended),
					change: ofPods("kueue.x-k8s.io/safe-to-forcefully-delete", "example.com/note")},
			}})
	}
	return out
}
