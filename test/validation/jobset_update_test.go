package validation

import "strings"

const podTemplate = leader + "template>spec>template>"

var suspended = edits{"spec>suspend": true}

func jobSetUpdateRules() []rule {
	of := "JobSet"
	full := edits{
		"spec>network>subdomain":   "s",
		"spec>failurePolicy":       "yaml:{maxRestarts: 1}",
		"spec>successPolicy":       "yaml:{operator: Any, targetReplicatedJobs: [workers]}",
		"spec>managedBy":           "acme.io/foo",
		"spec>volumeClaimPolicies": "yaml:[{templates: [{metadata: {name: v0}, spec: {}}]}]",
		container + "volumeMounts": "yaml:[{name: v0, mountPath: /v}]",
		workers + "dependsOn":      "yaml:[{name: leader, status: Ready}]",
	}
	finished := edits{"status>conditions>0": "yaml:" + condition("Completed", "True"), "status>restarts": 0}
	elastic := func(path string, parallelism, completions any) edits {
		return edits{path + "template>spec>parallelism": parallelism, path + "template>spec>completions": completions}
	}
	nonIndexed := edits{leader + "template>spec>completionMode": "NonIndexed"}
	return []rule{
		{of, "replicatedJobs are fixed", inCEL, "field is immutable",
			[]attempt{
				{what: "one more", before: edits{},
					change: edits{
						"spec>replicatedJobs>2": "yaml:{name: more, template: {spec: {template: {spec: {containers: [{name: c}]}}}}}"}},
				{what: "all removed", before: edits{}, change: edits{"spec>replicatedJobs": nil}},
				{what: "the spec removed", before: edits{}, change: edits{"spec": nil}},
				{what: "renamed", before: edits{}, change: edits{workers + "name": "others"}},
				{what: "another order", before: edits{}, change: edits{leader + "name": "workers", workers + "name": "leader"}},
				{what: "another group", before: edits{}, change: edits{leader + "groupName": "g"}},
				{what: "another number", before: edits{}, change: edits{leader + "replicas": 2}},
			},
			[]attempt{{what: "the same order", before: edits{}, change: suspended}}},
		{of, "templates are fixed", inImmutable, "field is immutable: spec.replicatedJobs[leader].template.",
			[]attempt{
				{what: "labels of the Jobs", before: edits{}, change: edits{leader + "template>metadata>labels": "yaml:{a: b}"}},
				{what: "another backoffLimit", before: edits{}, change: edits{leader + "template>spec>backoffLimit": 1}},
				{what: "another completionMode", before: edits{},
					change: edits{leader + "template>spec>completionMode": "NonIndexed"}},
				{what: "another image", before: edits{}, change: edits{container + "image": "j"}},
				{what: "another image while suspended", before: suspended, change: edits{container + "image": "j"}},
				{what: "another container", before: suspended, change: edits{podTemplate + "spec>containers>1": "yaml:{name: d}"}},
				{what: "another order of containers",
					before: suspended.with(edits{podTemplate + "spec>containers>1": "yaml:{name: d, image: i}"}),
					change: edits{podTemplate +
						"spec>containers": "yaml:[{name: d, image: i, resources: {}}, {name: c, image: i, resources: {}}]"}},
				{what: "another restartPolicy", before: suspended, change: edits{podTemplate + "spec>restartPolicy": "Never"}},
				{what: "a volume", before: suspended,
					change: edits{podTemplate + "spec>volumes": "yaml:[{name: v, emptyDir: {}}]"}},
				{what: "hostNetwork", before: suspended, change: edits{podTemplate + "spec>hostNetwork": true}},
				{what: "affinity", before: suspended, change: edits{podTemplate + "spec>affinity": "yaml:{nodeAffinity: {}}"}},
			},
			[]attempt{
				{what: "suspend", before: edits{}, change: suspended},
				{what: "resume", before: suspended, change: edits{"spec>suspend": false}},
				{what: "ttlSecondsAfterFinished", before: edits{}, change: edits{"spec>ttlSecondsAfterFinished": 5}},
				{what: "coordinator", before: edits{}, change: edits{"spec>coordinator": "yaml:{replicatedJob: leader}"}},
				{what: "labels of the JobSet", before: edits{}, change: edits{"metadata>labels": "yaml:{a: b}"}},
				{what: "the status", before: edits{}, change: finished},
				{what: "what is empty for what is absent", before: edits{},
					change: edits{podTemplate + "spec>volumes": "yaml:[]", podTemplate + "spec>nodeName": "",
						podTemplate + "spec>hostNetwork": false, leader + "template>metadata>labels": "yaml:{}"}},
			}},
		nodeChoiceRule("labels", podTemplate+"metadata>labels", "metadata.labels", "yaml:{a: b}"),
		nodeChoiceRule("annotations", podTemplate+"metadata>annotations", "metadata.annotations", "yaml:{a: b}"),
		nodeChoiceRule("nodeSelector", podTemplate+"spec>nodeSelector", "spec.nodeSelector", "yaml:{a: b}"),
		nodeChoiceRule("tolerations", podTemplate+"spec>tolerations", "spec.tolerations",
			"yaml:[{key: k, operator: Exists}]"),
		nodeChoiceRule("schedulingGates", podTemplate+"spec>schedulingGates", "spec.schedulingGates",
			"yaml:[{name: example.com/gate}]"),
		{of, "policies, network and dependsOn are fixed", inCEL, "Value is immutable",
			[]attempt{
				{what: "another subdomain", before: full, change: edits{"spec>network>subdomain": "t"}},
				{what: "no network", before: full, change: edits{"spec>network": nil}},
				{what: "another successPolicy", before: full, change: edits{"spec>successPolicy>operator": "All"}},
				{what: "no successPolicy", before: full, change: edits{"spec>successPolicy": nil}},
				{what: "more restarts", before: full, change: edits{"spec>failurePolicy>maxRestarts": 2}},
				{what: "no failurePolicy", before: full, change: edits{"spec>failurePolicy": nil}},
				{what: "a failurePolicy where there was none", before: edits{},
					change: edits{"spec>failurePolicy": "yaml:{maxRestarts: 1}"}},
				{what: "another startupPolicy", before: edits{}, change: edits{"spec>startupPolicy>startupPolicyOrder": "InOrder"}},
				{what: "another dependsOn", before: full, change: edits{workers + "dependsOn>0>status": "Complete"}},
				{what: "no dependsOn", before: full, change: edits{workers + "dependsOn": nil}},
				{what: "another volume claim", before: full,
					change: edits{"spec>volumeClaimPolicies>0>retentionPolicy>whenDeleted": "Retain"}},
				{what: "no volume claims", before: full, change: edits{"spec>volumeClaimPolicies": nil}},
			},
			[]attempt{
				{what: "nothing of them", before: full, change: suspended},
				{what: "what is the default left out", before: edits{},
					change: edits{"spec>network": nil, "spec>successPolicy": nil, "spec>startupPolicy": nil}},
			}},
		{of, "managedBy is fixed", inCEL, "field is immutable",
			[]attempt{
				{what: "another", before: full, change: edits{"spec>managedBy": "acme.io/bar"}},
				{what: "none", before: full, change: edits{"spec>managedBy": nil}},
				{what: "one where there was none", before: edits{}, change: edits{"spec>managedBy": "acme.io/foo"}},
			},
			[]attempt{{what: "the same", before: full, change: edits{"spec>managedBy": "acme.io/foo"}}}},
		{of, "only Indexed Jobs change their size", inImmutable,
			"field is immutable: only Indexed Jobs can change parallelism and completions",
			[]attempt{{what: "NonIndexed", before: nonIndexed, change: elastic(leader, 3, 3)}},
			[]attempt{{what: "Indexed", before: edits{}, change: elastic(leader, 3, 3)}}},
		{of, "parallelism of an elastic Job is at least 1", inImmutable, "parallelism must be >= 1",
			[]attempt{{what: "0", before: edits{}, change: elastic(leader, 0, 2)}},
			[]attempt{{what: "1", before: edits{}, change: elastic(leader, 1, 1)}}},
		{of, "completions of an elastic Job is at least 1", inImmutable, "completions must be >= 1",
			[]attempt{{what: "none", before: edits{}, change: elastic(leader, 2, nil)}},
			[]attempt{{what: "1", before: edits{}, change: elastic(leader, 1, 1)}}},
		{of, "completions of an elastic Job equals its parallelism", inImmutable,
			"completions must be equal to parallelism for Elastic Indexed Jobs",
			[]attempt{{what: "more", before: edits{}, change: elastic(workers, 2, 3)}},
			[]attempt{{what: "both more", before: edits{}, change: elastic(workers, 3, 3)}}},
		{of, "the size of Jobs of a finished JobSet is fixed", inImmutable,
			"Cannot mutate parallelism or completions when JobSet is in a terminal state (Completed or Failed)",
			[]attempt{{what: "completed", before: finished, change: elastic(leader, 3, 3)}},
			[]attempt{
				{what: "nothing of it", before: finished, change: edits{"spec>ttlSecondsAfterFinished": 5}},
				{what: "suspended", before: suspended, change: elastic(leader, 3, 3)},
			}},
	}
}

// nodeChoiceRule is the rule of a field of the pod templates that may change while the JobSet is, or becomes,
// suspended.
func nodeChoiceRule(field, path, named, value string) rule {
	return rule{"JobSet", field + " of pod templates are fixed while it is not suspended", inImmutable,
		"field is immutable while the JobSet is not suspended: " + named + " of a pod template changed",
		[]attempt{
			{what: "added", before: edits{}, change: edits{path: value}},
			{what: "removed", before: edits{path: value}, change: edits{path: nil}},
		},
		[]attempt{
			{what: "added while suspended", before: suspended, change: edits{path: value}},
			{what: "removed while suspended", before: suspended.with(edits{path: value}), change: edits{path: nil}},
			{what: "added with the suspension", before: edits{}, change: suspended.with(edits{path: value})},
			{what: "added with the resumption", before: suspended, change: edits{path: value, "spec>suspend": false}},
		}}
}

func jobSetPolicyRules() []rule {
	of := "JobSet"
	const exclusive, nodeSelector = "alpha.jobset.sigs.k8s.io/exclusive-topology", "alpha.jobset.sigs.k8s.io/node-selector"
	nonIndexed := edits{workers + "template>spec>completionMode": "NonIndexed"}
	claims := func(templates string) edits {
		return edits{"spec>volumeClaimPolicies": "yaml:[{templates: [" + templates + "]}]",
			container + "volumeMounts": "yaml:[{name: v0, mountPath: /v}, {name: v1, mountPath: /w}]"}
	}
	label := func(key, value string) edits { return edits{"metadata>labels": map[string]any{key: value}} }
	queueAnnotation := func(value string) edits {
		return edits{"metadata>annotations": map[string]any{"kueue.x-k8s.io/queue-name": value}}
	}
	return []rule{
		{of, "exclusive placement is for Indexed Jobs", inExclusive, "exclusive placement needs completionMode Indexed",
			[]attempt{
				{what: "asked for by the JobSet", change: nonIndexed.with(edits{"metadata>annotations>" + exclusive: "rack"})},
				{what: "asked for by the template",
					change: nonIndexed.with(edits{workers + "template>metadata>annotations": map[string]any{exclusive: "rack"}})},
				{what: "asked for later", before: nonIndexed, change: edits{"metadata>annotations>" + exclusive: "rack"}},
			},
			[]attempt{
				{what: "Indexed by default", change: edits{"metadata>annotations>" + exclusive: "rack"}},
				{what: "asked for by the other template",
					change: nonIndexed.with(edits{leader + "template>metadata>annotations": map[string]any{exclusive: "rack"}})},
				{what: "on nodes that people have labelled",
					change: nonIndexed.with(edits{"metadata>annotations": map[string]any{exclusive: "rack", nodeSelector: "true"}})},
			}},
		{of, "exclusive placement names a node label", inExclusive, "must be the key of a node label",
			[]attempt{
				{what: "a sentence", change: edits{"metadata>annotations>" + exclusive: "the rack"}},
				{what: "nothing", change: edits{"metadata>annotations>" + exclusive: ""}},
			},
			[]attempt{{what: "a key", change: edits{"metadata>annotations>" + exclusive: "topology.kubernetes.io/zone"}}}},
		{of, "dependsOn names earlier replicated jobs", inReferences,
			"replicatedJob: workers cannot depend on replicatedJob: ",
			[]attempt{
				{what: "itself", change: edits{workers + "dependsOn": "yaml:[{name: workers, status: Ready}]"}},
				{what: "none", change: edits{workers + "dependsOn": "yaml:[{name: other, status: Ready}]"}},
				{what: "a later one", change: edits{workers + "dependsOn": "yaml:[{name: last, status: Ready}]",
					"spec>replicatedJobs>2": "yaml:{name: last, template: {spec: {template: {spec: {containers: [{name: c}]}}}}}"}},
			},
			[]attempt{{what: "an earlier one", change: edits{workers + "dependsOn": "yaml:[{name: leader, status: Ready}]"}}}},
		{of, "successPolicy names replicated jobs", inReferences,
			"invalid replicatedJob name 'other' does not appear in .spec.ReplicatedJobs",
			[]attempt{{what: "another",
				change: edits{"spec>successPolicy": "yaml:{operator: All, targetReplicatedJobs: [leader, other]}"}}},
			[]attempt{{what: "theirs",
				change: edits{"spec>successPolicy": "yaml:{operator: All, targetReplicatedJobs: [leader]}"}}}},
		{of, "failurePolicy names replicated jobs", inReferences,
			"invalid replicatedJob name 'other' in failure policy does not appear in .spec.ReplicatedJobs",
			[]attempt{{what: "another",
				change: edits{
					"spec>failurePolicy": "yaml:{rules: [{action: FailJobSet, targetReplicatedJobs: [leader]}, {action: FailJobSet, targetReplicatedJobs: [other]}]}"}}},
			[]attempt{{what: "theirs",
				change: edits{
					"spec>failurePolicy": "yaml:{rules: [{action: FailJobSet, targetReplicatedJobs: [leader, workers]}]}"}}}},
		{of, "with volume claims it has at most 500 of their templates, 2,048 containers and volumes, and 4,096 volume mounts",
			inClaims, "with volumeClaimPolicies a JobSet has at most 500 templates of claims",
			[]attempt{
				{what: "501 templates", change: manyClaims(501)},
				{what: "2,049 volumes",
					change: manyClaims(1).with(edits{leader + "template>spec>template>spec>volumes": times(1024, "{name: e%d}"),
						workers + "template>spec>template>spec>volumes": times(1024, "{name: e%d}")})},
			},
			[]attempt{{what: "500", change: manyClaims(500)}}},
		{of, "names of volume claim templates are unique", inClaims, "names must be unique for VolumeClaimPolicies template",
			[]attempt{{what: "two of one name",
				change: claims("{metadata: {name: v0}, spec: {}}, {metadata: {name: v0}, spec: {}}")}},
			[]attempt{{what: "two of two names",
				change: claims("{metadata: {name: v0}, spec: {}}, {metadata: {name: v1}, spec: {}}")}}},
		{of, "names of volume claim templates are DNS subdomains", inClaims,
			"the name of a VolumeClaimPolicies template must be a DNS-1123 subdomain",
			[]attempt{
				{what: "capitals", change: claims("{metadata: {name: V0}, spec: {}}")},
				{what: "none", change: claims("{spec: {}}")},
			},
			[]attempt{{what: "a name", change: claims("{metadata: {name: v0}, spec: {}}")}}},
		{of, "names of volume claims have at most 63 characters", inClaims, "VolumeClaimPolicies template name is too long",
			[]attempt{{what: "64",
				change: edits{"spec>volumeClaimPolicies": "yaml:[{templates: [{metadata: {name: v0}, spec: {}}]}]",
					"metadata>name": strings.Repeat("j", 61), "spec>replicatedJobs": nil}}},
			[]attempt{{what: "short", change: claims("{metadata: {name: v0}, spec: {}}")}}},
		{of, "a container mounts each volume claim", inClaims,
			"replicatedJob containers don't have a matching volumeMount: v2 from VolumeClaimPolicies",
			[]attempt{{what: "one that none mounts",
				change: claims("{metadata: {name: v0}, spec: {}}, {metadata: {name: v2}, spec: {}}")}},
			[]attempt{{what: "one that an init container of another replicated job mounts",
				change: claims("{metadata: {name: v3}, spec: {}}").with(edits{
					workers +
						"template>spec>template>spec>initContainers": "yaml:[{name: i, volumeMounts: [{name: v3, mountPath: /v}]}]"})}}},
		{of, "no volume has the name of a volume claim", inClaims,
			"volume name conflicts with VolumeClaimPolicy template name: v0",
			[]attempt{{what: "one", change: claims("{metadata: {name: v0}, spec: {}}").
				with(edits{workers + "template>spec>template>spec>volumes": "yaml:[{name: v0, emptyDir: {}}]"})}},
			[]attempt{{what: "another name",
				change: claims("{metadata: {name: v0}, spec: {}}").
					with(edits{workers + "template>spec>template>spec>volumes": "yaml:[{name: v9, emptyDir: {}}]"})}}},
		{of, "the label queue-name is the name of a queue", inLabels,
			"the label kueue.x-k8s.io/queue-name must be the name of a queue",
			[]attempt{
				{what: "capitals", change: label("kueue.x-k8s.io/queue-name", "Team_A")},
				{what: "capitals, later", before: edits{}, change: label("kueue.x-k8s.io/queue-name", "Team_A")},
			},
			[]attempt{
				{what: "a name", change: label("kueue.x-k8s.io/queue-name", "team-a")},
				{what: "empty, which is none", change: label("kueue.x-k8s.io/queue-name", "")},
			}},
		{of, "the label queue-name is added before a JobSet runs", inLabels,
			"the label kueue.x-k8s.io/queue-name cannot be added to a JobSet that runs without it: set spec.suspend to true first, or in the same change",
			[]attempt{{what: "to one that runs", before: edits{}, change: label("kueue.x-k8s.io/queue-name", "team-a")}},
			[]attempt{
				{what: "to one that is suspended", before: edits{"spec>suspend": true},
					change: label("kueue.x-k8s.io/queue-name", "team-a")},
				{what: "to one that is suspended by the same change", before: edits{},
					change: label("kueue.x-k8s.io/queue-name", "team-a").with(edits{"spec>suspend": true})},
				{what: "to one in another queue", before: label("kueue.x-k8s.io/queue-name", "team-b"),
					change: label("kueue.x-k8s.io/queue-name", "team-a")},
				{what: "to one that names its queue by the annotation", before: queueAnnotation("team-a"),
					change: label("kueue.x-k8s.io/queue-name", "team-a")},
			}},
		{of, "a JobSet in a queue has at most 64 replicated jobs", inLabels,
			"a JobSet in a queue has at most 64 replicated jobs, and this one has ",
			[]attempt{
				{what: "65", change: label("kueue.x-k8s.io/queue-name",
					"team-a").with(edits{"spec>replicatedJobs": times(65, plainJob)})},
				{what: "128, by the annotation",
					change: queueAnnotation("team-a").with(edits{"spec>replicatedJobs": times(128, plainJob)})},
				{what: "queued later", before: edits{"spec>suspend": true, "spec>replicatedJobs": times(65, plainJob)},
					change: label("kueue.x-k8s.io/queue-name", "team-a")},
			},
			[]attempt{
				{what: "64", change: label("kueue.x-k8s.io/queue-name",
					"team-a").with(edits{"spec>replicatedJobs": times(64, plainJob)})},
				{what: "128 without a queue", change: edits{"spec>replicatedJobs": times(128, plainJob)}},
			}},
		{of, "the annotation queue-name is the name of a queue", inLabels,
			"the annotation kueue.x-k8s.io/queue-name must be the name of a queue",
			[]attempt{
				{what: "capitals", change: queueAnnotation("Team_A")},
				{what: "capitals, later", before: edits{}, change: queueAnnotation("Team_A")},
			},
			[]attempt{{what: "a name", change: queueAnnotation("team-a")},
				{what: "empty, which is none", change: queueAnnotation("")}}},
		{of, "the annotation queue-name is added before a JobSet runs", inLabels,
			"the annotation kueue.x-k8s.io/queue-name cannot be added to a JobSet that runs without it: set spec.suspend to true first, or in the same change",
			[]attempt{{what: "to one that runs", before: edits{}, change: queueAnnotation("team-a")}},
			[]attempt{
				{what: "to one that is suspended", before: edits{"spec>suspend": true}, change: queueAnnotation("team-a")},
				{what: "to one that is suspended by the same change", before: edits{},
					change: queueAnnotation("team-a").with(edits{"spec>suspend": true})},
				{what: "to one that has the label", before: label("kueue.x-k8s.io/queue-name", "team-a"),
					change: queueAnnotation("team-a")},
			}},
		{of, "the label priority-class is the name of a class", inLabels,
			"the label kueue.x-k8s.io/priority-class must be the name of a WorkloadPriorityClass",
			[]attempt{{what: "capitals", change: label("kueue.x-k8s.io/priority-class", "High")}},
			[]attempt{{what: "a name", change: label("kueue.x-k8s.io/priority-class", "high")}}},
		{of, "the label max-exec-time-seconds is a number of seconds", inLabels,
			"the label kueue.x-k8s.io/max-exec-time-seconds must be a number from 1 to 999999999",
			[]attempt{
				{what: "0", change: label("kueue.x-k8s.io/max-exec-time-seconds", "0")},
				{what: "a duration", change: label("kueue.x-k8s.io/max-exec-time-seconds", "10m")},
			},
			[]attempt{{what: "600", change: label("kueue.x-k8s.io/max-exec-time-seconds", "600")}}},
	}
}

// manyClaims are so many templates of claims, 50 to a policy, each mounted by the leader.
func manyClaims(count int) edits {
	policies := []any{}
	mounts := times(count, "{name: v%d, mountPath: /v%d}")
	for left := times(count, claim); len(left) > 0; left = left[min(50, len(left)):] {
		policies = append(policies, map[string]any{"templates": left[:min(50, len(left))]})
	}
	return edits{"spec>volumeClaimPolicies": policies, container + "volumeMounts": mounts}
}
