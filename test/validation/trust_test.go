package validation

// trustRules are about what is for the operator alone, and for the controllers of checks, whoever else may write a
// Workload.
func trustRules() []rule {
	of := "Workload"
	checks := func(state string) edits {
		return edits{"status>admissionChecks": `yaml:[{name: a, state: ` + state + `, lastTransitionTime: "2026-01-01T00:00:00Z", message: ""},
			{name: b, state: Pending, lastTransitionTime: "2026-01-01T00:00:00Z", message: ""}]`}
	}
	queued := edits{"metadata>annotations": `yaml:{muster.dev/queued-time: "2020-01-01T00:00:00Z"}`}
	ownedBy := func(version, kind string) edits {
		return edits{"metadata>ownerReferences": "yaml:[{apiVersion: " + version + ", kind: " + kind +
			", name: j, uid: u, controller: true}]"}
	}
	uid := func(of string) edits { return edits{"metadata>labels": "yaml:{kueue.x-k8s.io/job-uid: " + of + "}"} }
	ofJobSet := ownedBy("jobset.x-k8s.io/v1alpha2", "JobSet")
	fewer := edits{"spec>podSets>0>count": 1}
	admission := edits{"status>admission": "yaml:{clusterQueue: cq, podSetAssignments: [{name: main}]}"}
	return []rule{
		{of, "only the operator admits, places and evicts", inTrusted,
			"are for system:serviceaccount:muster-system:muster-operator alone",
			[]attempt{
				{what: "an admission", before: edits{}, change: admission, user: reporter},
				{what: "an admission by who may write the status of a check", before: edits{}, change: admission, user: checker},
				{what: "quota reserved no more", before: reserved,
					change: edits{"status>conditions>0": "yaml:" + condition("QuotaReserved", "False")}, user: reporter},
				{what: "quota given back", before: admitted, change: givenBack, user: reporter},
				{what: "admitted", before: reserved,
					change: edits{"status>conditions>1": "yaml:" + condition("Admitted", "True")}, user: reporter},
				{what: "evicted", before: admitted,
					change: edits{"status>conditions>2": "yaml:" + condition("Evicted", "True")}, user: reporter},
				{what: "evicted no more",
					before: admitted.with(edits{"status>conditions>2": "yaml:" + condition("Evicted", "True")}),
					change: edits{"status>conditions>2": "yaml:" + condition("Evicted", "False")}, user: reporter},
				{what: "preempted", before: admitted,
					change: edits{"status>conditions>2": "yaml:" + condition("Preempted", "True")}, user: reporter},
				{what: "less used while it shrinks", before: admitted,
					change: edits{"status>resourceRequests": "yaml:[{name: main, resources: {cpu: 1}}]"}, user: reporter},
				{what: "a node that is broken", before: admitted,
					change: edits{"status>unhealthyNodes": "yaml:[{name: node-1}]"}, user: reporter},
				{what: "it has run for no time", before: edits{"status>accumulatedPastExexcutionTimeSeconds": 60},
					change: edits{"status>accumulatedPastExexcutionTimeSeconds": 1}, user: reporter},
			},
			[]attempt{
				{what: "the operator admits", before: edits{}, change: admission, user: operator},
				{what: "the operator evicts", before: admitted,
					change: edits{"status>conditions>2": "yaml:" + condition("Evicted", "True")}, user: operator},
				{what: "an admission by who may mend it", before: edits{}, change: admission, user: mender},
				{what: "pods are ready", before: admitted,
					change: edits{"status>conditions>2": "yaml:" + condition("PodsReady", "True")}, user: reporter},
				{what: "it has finished", before: admitted,
					change: edits{"status>conditions>2": "yaml:" + condition("Finished", "True")}, user: reporter},
				{what: "pods have ended", before: admitted,
					change: edits{"status>reclaimablePods": "yaml:[{name: main, count: 1}]"}, user: reporter},
				{what: "when it queues again", before: edits{},
					change: edits{"status>requeueState": `yaml:{count: 1, requeueAt: "2026-01-01T00:00:00Z"}`}, user: reporter},
			}},
		{of, "only its controller sets the state of a check", inChecks,
			"the state of an admission check is for its controller",
			[]attempt{
				{what: "by who writes the status", before: checks("Pending"),
					change: edits{"status>admissionChecks>0>state": "Ready"}, user: reporter},
				{what: "by the controller of another", before: checks("Pending"),
					change: edits{"status>admissionChecks>1>state": "Ready"}, user: checker},
				{what: "its own and another", before: checks("Pending"), change: edits{"status>admissionChecks>0>state": "Ready",
					"status>admissionChecks>1>state": "Ready"}, user: checker},
				{what: "a check is left out", before: checks("Pending"),
					change: edits{
						"status>admissionChecks": `yaml:[{name: a, state: Pending, lastTransitionTime: "2026-01-01T00:00:00Z", message: ""}]`},
					user: checker},
				{what: "its words", before: checks("Pending"),
					change: edits{"status>admissionChecks>1>message": "ready soon"}, user: reporter},
			},
			[]attempt{
				{what: "by its controller", before: checks("Pending"),
					change: edits{"status>admissionChecks>0>state": "Ready"}, user: checker},
				{what: "by its controller, who takes it back", before: checks("Ready"),
					change: edits{"status>admissionChecks>0>state": "Retry"}, user: checker},
				{what: "by the operator", before: checks("Ready"), change: checks("Pending"), user: operator},
				{what: "by an administrator", before: checks("Pending"),
					change: edits{"status>admissionChecks>0>state": "Ready", "status>admissionChecks>1>state": "Ready"}},
			}},
		{of, "only the operator sets since when a Workload queues", inQueuedTime,
			"is for system:serviceaccount:muster-system:muster-operator to say",
			[]attempt{
				{what: "a new one", change: queued, user: reporter},
				{what: "one that is there", before: edits{}, change: queued, user: reporter},
				{what: "no more", before: queued, change: edits{"metadata>annotations": nil}, user: reporter},
			},
			[]attempt{
				{what: "by the operator", change: queued, user: operator},
				{what: "by who may mend it", change: queued, user: mender},
				{what: "another change of one that says it", before: queued, change: edits{"spec>active": false}, user: reporter},
				{what: "a new one without", change: edits{}, user: reporter},
			}},
		{of, "who may update Workloads alone changes spec.active", inActive, "of a Workload you may change spec.active alone",
			[]attempt{
				{what: "another queue", before: edits{}, change: edits{"spec>queueName": "other"}, user: editor},
				{what: "a priority", before: edits{}, change: edits{"spec>priority": 7}, user: editor},
				{what: "fewer pods", before: edits{}, change: fewer, user: editor},
				{what: "a label", before: edits{},
					change: edits{"metadata>labels": "yaml:{kueue.x-k8s.io/job-uid: u}"}, user: editor},
				{what: "an annotation", before: edits{},
					change: edits{"metadata>annotations": "yaml:{example.com/a: b}"}, user: editor},
				{what: "an owner", before: edits{}, change: ownedBy("example.com/v1", "Anything"), user: editor},
				{what: "no finalizer", before: edits{"metadata>finalizers": "yaml:[example.com/f]"},
					change: edits{"metadata>finalizers": nil}, user: editor},
				{what: "spec.active and a limit", before: edits{},
					change: edits{"spec>active": false, "spec>maximumExecutionTimeSeconds": 1}, user: editor},
			},
			[]attempt{
				{what: "it is stopped", before: edits{}, change: edits{"spec>active": false}, user: editor},
				{what: "it goes on", before: edits{"spec>active": false}, change: edits{"spec>active": true}, user: editor},
				{what: "that of a job", before: ofJobSet, change: edits{"spec>active": false}, user: editor},
				{what: "more, by who makes Workloads", before: edits{}, change: edits{"spec>priority": 7}, user: reporter},
				{what: "more, by the operator", before: edits{}, change: edits{"spec>priority": 7}, user: operator},
				{what: "more, by an administrator", before: edits{}, change: edits{"spec>queueName": "other"}},
			}},
		{of, "only the operator sets what the Workload of a job requests", inOfJob, "what the Workload of a job asks for",
			[]attempt{
				{what: "a new one", change: ofJobSet, user: reporter},
				{what: "of a batch Job", change: ownedBy("batch/v1", "Job"), user: reporter},
				{what: "of a VCJob", change: ownedBy("batch.volcano.sh/v1alpha1", "Job"), user: reporter},
				{what: "of a TrainingJob", change: ownedBy("breezeml.ai/v1", "TrainingJob"), user: reporter},
				{what: "fewer pods of one that becomes another's", before: ofJobSet,
					change: ownedBy("example.com/v1", "Anything").with(fewer), user: reporter},
				{what: "fewer pods of one that becomes nobody's", before: ofJobSet,
					change: edits{"metadata>ownerReferences": nil}.with(fewer), user: reporter},
				{what: "one of a custom integration that becomes a job's", before: ownedBy("example.com/v1", "JobSet"),
					change: ofJobSet, user: reporter},
				{what: "one that becomes the job's", before: edits{}, change: ofJobSet, user: reporter},
				{what: "fewer pods", before: ofJobSet, change: fewer, user: reporter},
				{what: "of another job by its label", before: uid("u"), change: uid("v"), user: reporter},
				{what: "of no job by its label", before: uid("u"), change: edits{"metadata>labels": nil}, user: reporter},
				{what: "what the job asked for when it did", before: ofJobSet,
					change: edits{"metadata>annotations": "yaml:{muster.dev/asked: another}"}, user: reporter},
			},
			[]attempt{
				{what: "by the operator", change: ofJobSet, user: operator},
				{what: "by the operator, fewer pods", before: ofJobSet, change: fewer, user: operator},
				{what: "by who may mend it", before: ofJobSet, change: fewer, user: mender},
				{what: "another change", before: ofJobSet, change: edits{"spec>active": false}, user: reporter},
				{what: "another annotation", before: ofJobSet,
					change: edits{"metadata>annotations": "yaml:{example.com/a: b}"}, user: reporter},
				{what: "of a job that a custom integration runs", change: ownedBy("example.com/v1", "Job"), user: reporter},
				{what: "of one whose kind has the name of another",
					change: ownedBy("example.com/v1", "TrainingJob"), user: reporter},
				{what: "fewer pods of it", before: ownedBy("example.com/v1", "JobSet"), change: fewer, user: reporter},
				{what: "of another job by its label, by the operator", before: uid("u"), change: uid("v"), user: operator},
				{what: "a new one with the label", change: uid("u"), user: reporter},
				{what: "another label", before: uid("u"),
					change: edits{"metadata>labels": "yaml:{kueue.x-k8s.io/job-uid: u, a: b}"}, user: reporter},
				{what: "fewer pods of one with the label", before: uid("u"), change: fewer, user: reporter},
				{what: "fewer pods of nobody's", before: edits{}, change: fewer, user: reporter},
			}},
	}
}

// makerRules are about what jobs have made for them, by whoever may not make it himself and by one who may.
func makerRules() []rule {
	const (
		claim   = "v: {type: volume, id: v, params: {size: 1Gi}}"
		secret  = "s: {type: secret, id: s, params: {provider: p}}"
		replica = "spec>tasks>main>replicas"
	)
	resources := func(text string) edits { return edits{"spec>tasks>main>workload>resources": "yaml:{" + text + "}"} }
	jobSet := edits{
		"spec>volumeClaimPolicies": "yaml:[{templates: [{metadata: {name: v0}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]}]",
		"spec>replicatedJobs>0>template>spec>template>spec>containers>0>volumeMounts": "yaml:[{name: v0, mountPath: /v}]",
	}
	vcJob := edits{"spec>volumes": "yaml:[{mountPath: /v, volumeClaim: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}]"}
	const mesh = "o: {type: service, id: o, direction: outbound}"
	return []rule{
		{"JobSet", "the user may create the claims", inClaimRights,
			"volumeClaimPolicies need PersistentVolumeClaims, which you may not create",
			[]attempt{
				{what: "a new one", change: jobSet, user: maker},
			},
			[]attempt{
				{what: "a new one", change: jobSet, user: owner},
				{what: "another change", before: jobSet, change: edits{"spec>suspend": true}, user: maker},
				{what: "without claims", change: edits{}, user: maker},
			}},
		{"VCJob", "the user may create the claims", inVCJobClaimRights,
			"volumes with a volumeClaim need PersistentVolumeClaims, which you may not create",
			[]attempt{{what: "a new one", change: vcJob, user: maker}},
			[]attempt{
				{what: "a new one", change: vcJob, user: owner},
				{what: "another change", before: vcJob, change: edits{"spec>minAvailable": 2}, user: maker},
				{what: "a claim that is there",
					change: edits{"spec>volumes": "yaml:[{mountPath: /v, volumeClaimName: v}]"}, user: maker},
			}},
		{"LatticeJob", "the user may create the ServiceAccounts", inLatticeRights,
			"tasks need ServiceAccounts, which you may not create",
			[]attempt{
				{what: "a new one", change: edits{}, user: maker},
				{what: "another task", before: edits{},
					change: edits{"spec>tasks>more": "yaml:{workload: {containers: {c: {image: i, resources: {limits: {cpu: 1}}}}}}"},
					user:   maker},
			},
			[]attempt{
				{what: "a new one", change: edits{}, user: owner},
				{what: "one that calls a service", change: resources(mesh), user: owner},
				{what: "another change", before: edits{}, change: edits{"spec>maxRetry": 2}, user: maker},
			}},
		{"LatticeJob", "the user may create the claims", inLatticeRights,
			"volumes with a size need PersistentVolumeClaims, which you may not create",
			[]attempt{
				{what: "a new one", change: resources(claim), user: tasker},
				{what: "by the defaults",
					change: edits{"spec>defaults": "yaml:{workload: {resources: {" + claim + "}}}"}, user: tasker},
				{what: "added", before: edits{}, change: resources(claim), user: tasker},
				{what: "a volume whose size the defaults say of something else", change: edits{
					"spec>tasks>main>workload>resources": "yaml:{v: {type: volume, id: v}}",
					"spec>defaults":                      "yaml:{workload: {resources: {v: {type: custom, params: {size: 1Gi}}}}}"},
					user: tasker},
			},
			[]attempt{
				{what: "a new one", change: resources(claim), user: owner},
				{what: "a volume that is there", change: resources("v: {type: volume, id: v}"), user: tasker},
				{what: "a volume that is there, beside something that has a size",
					change: resources("v: {type: volume, id: v}, o: {type: custom, id: o, params: {size: 1Gi}}"), user: tasker},
				{what: "a volume that is there, and the size of another task's",
					change: resources("v: {type: volume, id: v}").with(edits{
						"spec>tasks>more": "yaml:{workload: {containers: {c: {image: i, resources: {limits: {cpu: 1}}}}, resources: {v: {type: custom, id: o, params: {size: 1Gi}}}}}"}),
					user: tasker},
			}},
		{"LatticeJob", "the user may create the ExternalSecrets", inLatticeRights,
			"secrets need ExternalSecrets, which you may not create",
			[]attempt{
				{what: "a new one", change: resources(secret), user: tasker},
				{what: "added", before: edits{}, change: resources(secret), user: tasker},
				{what: "with another change where there is one", before: resources(secret),
					change: edits{replica: 3}, user: tasker},
			},
			[]attempt{{what: "a new one", change: resources(secret), user: owner}}},
	}
}
