package validation

import (
	"fmt"
	"strings"
)

const (
	vcMaster = "spec>tasks>0>"
	vcWorker = "spec>tasks>1>"
)

const plainTask = "{name: t%d, replicas: 1, template: {spec: {containers: [{name: c}]}}}"

func vcJobSchemaRules() []rule {
	of := "VCJob"
	policies := func(list string) edits { return edits{"spec>policies": "yaml:" + list} }
	return []rule{
		{of, "it has at most 64 tasks", inSchema, "must have at most 64 items",
			[]attempt{{what: "65", change: edits{"spec>tasks": times(65, plainTask)}}},
			[]attempt{{what: "64", change: edits{"spec>tasks": times(64, plainTask)}}}},
		{of, "the name of a task is a DNS label, or empty", inSchema, "spec.tasks[1].name in body should match",
			[]attempt{{what: "capitals", change: edits{vcWorker + "name": "Worker"}}},
			[]attempt{{what: "digits first", change: edits{vcWorker + "name": "0-worker"}},
				{what: "empty", change: edits{vcWorker + "name": ""}}}},
		{of, "replicas is not negative", inSchema, "spec.tasks[1].replicas in body should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{vcWorker + "replicas": -1}}},
			[]attempt{{what: "0", change: edits{vcWorker + "replicas": 0}}}},
		{of, "minAvailable is not negative", inSchema, "spec.minAvailable in body should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>minAvailable": -1}}},
			[]attempt{{what: "0, for the sum of the tasks'", change: edits{"spec>minAvailable": 0}}}},
		{of, "maxRetry is not negative", inSchema, "spec.maxRetry in body should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>maxRetry": -1}}},
			[]attempt{{what: "0, for 3", change: edits{"spec>maxRetry": 0}}}},
		{of, "minSuccess is at least 1", inSchema, "spec.minSuccess in body should be greater than or equal to 1",
			[]attempt{{what: "0", change: edits{"spec>minSuccess": 0}}},
			[]attempt{{what: "1", change: edits{"spec>minSuccess": 1}}}},
		{of, "ttlSecondsAfterFinished is not negative", inSchema,
			"spec.ttlSecondsAfterFinished in body should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>ttlSecondsAfterFinished": -1}}},
			[]attempt{{what: "0", change: edits{"spec>ttlSecondsAfterFinished": 0}}}},
		{of, "queue is a DNS subdomain", inSchema, "spec.queue in body should match",
			[]attempt{{what: "capitals", change: edits{"spec>queue": "Q"}}},
			[]attempt{{what: "a name", change: edits{"spec>queue": "team.a"}}}},
		{of, "an action is supported", inSchema, "spec.policies[0].action: Unsupported value",
			[]attempt{{what: "SyncJob", change: policies("[{event: PodFailed, action: SyncJob}]")}},
			[]attempt{{what: "RestartJob", change: policies("[{event: PodFailed, action: RestartJob}]")}}},
		{of, "an event is supported", inSchema, "Unsupported value",
			[]attempt{
				{what: "CommandIssued", change: policies("[{event: CommandIssued, action: RestartJob}]")},
				{what: "OutOfSync in events", change: policies("[{events: [OutOfSync], action: RestartJob}]")},
			},
			[]attempt{{what: "any", change: policies(`[{event: "*", action: RestartJob}]`)}}},
		{of, "a timeout is a duration", inSchema, "spec.policies[0].timeout in body should match",
			[]attempt{
				{what: "words", change: policies("[{event: PodFailed, action: RestartJob, timeout: 5 minutes}]")},
				{what: "negative", change: policies("[{event: PodFailed, action: RestartJob, timeout: -5m}]")},
				{what: "longer than programs can count",
					change: policies("[{event: PodFailed, action: RestartJob, timeout: 9999999h}]")},
				{what: "without a unit", change: policies(`[{event: PodFailed, action: RestartJob, timeout: "80"}]`)},
			},
			[]attempt{
				{what: "minutes", change: policies("[{event: PodFailed, action: RestartJob, timeout: 5m}]")},
				{what: "a mixture", change: policies("[{event: PodFailed, action: RestartJob, timeout: 1h30m0.5s}]")},
			}},
		{of, "runningEstimate is a duration", inSchema, "spec.runningEstimate in body should match",
			[]attempt{{what: "a word", change: edits{"spec>runningEstimate": "long"}}},
			[]attempt{{what: "hours", change: edits{"spec>runningEstimate": "36h"}}}},
		{of, "a port of a probe is a 32-bit number or a name", inSchema,
			"httpGet.port in body should be less than or equal to",
			[]attempt{{what: "2147483648",
				change: edits{vcWorker + "template>spec>containers>0>livenessProbe": "yaml:{httpGet: {port: 2147483648}}"}}},
			[]attempt{{what: "a name",
				change: edits{vcWorker + "template>spec>containers>0>livenessProbe": "yaml:{httpGet: {port: web}}"}}}},
		{of, "dependsOn waits for any or all", inSchema, "spec.tasks[1].dependsOn.iteration: Unsupported value",
			[]attempt{{what: "some", change: edits{vcWorker + "dependsOn": "yaml:{name: [master], iteration: some}"}}},
			[]attempt{{what: "all", change: edits{vcWorker + "dependsOn": "yaml:{name: [master], iteration: all}"}}}},
		{of, "networkTopology is hard or soft", inSchema, "spec.networkTopology.mode: Unsupported value",
			[]attempt{{what: "firm", change: edits{"spec>networkTopology": "yaml:{mode: firm}"}}},
			[]attempt{{what: "soft", change: edits{"spec>networkTopology": "yaml:{mode: soft}"}}}},
	}
}

// manyPolicies returns the change to a Job of so many tasks, with so many policies each.
func manyPolicies(tasks, policies int) edits {
	list := make([]any, tasks)
	for i := range list {
		list[i] = map[string]any{"name": fmt.Sprintf("t%d", i), "replicas": 1,
			"template": fromYAML("{spec: {containers: [{name: c, image: i}]}}"),
			"policies": times(policies, "{exitCode: 1%d, action: AbortJob}")}
	}
	return edits{"spec>tasks": list}
}

func vcJobRules() []rule {
	of := "VCJob"
	policies := func(list string) edits { return edits{"spec>policies": "yaml:" + list} }
	return []rule{
		{of, "it has a task", inCEL, "No task specified in job spec",
			[]attempt{{what: "none", change: edits{"spec>tasks": nil}},
				{what: "an empty list", change: edits{"spec>tasks": []any{}}}},
			[]attempt{{what: "two"}}},
		{of, "minAvailable is at most all pods", inCEL,
			"job 'minAvailable' should not be greater than total replicas in tasks",
			[]attempt{{what: "6 of 5", change: edits{"spec>minAvailable": 6}}},
			[]attempt{{what: "5 of 5", change: edits{"spec>minAvailable": 5}}}},
		{of, "minAvailable of a task is at most its pods", inCEL, "minAvailable of a task must be at most its replicas",
			[]attempt{{what: "5 of 4", change: edits{vcWorker + "minAvailable": 5}}},
			[]attempt{{what: "4 of 4", change: edits{vcWorker + "minAvailable": 4}}}},
		{of, "it has at most 10,000 pods", inCEL, "replicas of all tasks must be at most 10000 together",
			[]attempt{{what: "10,001", change: edits{vcWorker + "replicas": 10000}}},
			[]attempt{{what: "10,000", change: edits{vcWorker + "replicas": 9999}}}},
		{of, "minSuccess is at most all pods", inCEL, "minSuccess must be at most the replicas of all tasks",
			[]attempt{{what: "6 of 5", change: edits{"spec>minSuccess": 6}}},
			[]attempt{{what: "5 of 5", change: edits{"spec>minSuccess": 5}}}},
		{of, "queue is fixed", inCEL, "queue is immutable: create a new Job",
			[]attempt{{what: "another", before: edits{}, change: edits{"spec>queue": "b"}}},
			[]attempt{{what: "the same", before: edits{"spec>queue": "a"},
				change: edits{"spec>queue": "a", "spec>priorityClassName": "high"}}}},
		{of, "a volume has a claim", inCEL, "a volume needs either volumeClaimName, of an existing claim, or volumeClaim, for a new one",
			[]attempt{{what: "none", change: edits{"spec>volumes": "yaml:[{mountPath: /data}]"}},
				{what: "both",
					change: edits{"spec>volumes": "yaml:[{mountPath: /data, volumeClaimName: data, volumeClaim: {accessModes: [ReadWriteOnce]}}]"}}},
			[]attempt{{what: "by name", change: edits{"spec>volumes": "yaml:[{mountPath: /data, volumeClaimName: data}]"}}}},
		{of, "it has at most 512 policies", inVCJob, "a Job can have at most 512 policies, those of its tasks included",
			[]attempt{
				{what: "in tasks of 57", change: manyPolicies(9, 57)},
				{what: "one of its own beside 512",
					change: policies("[{exitCode: 3, action: RestartJob}]").with(manyPolicies(8, 64))},
			},
			[]attempt{{what: "512", change: manyPolicies(8, 64)}}},
		{of, "a policy says what to do", inVCJob, "a policy must specify an action",
			[]attempt{{what: "nothing", change: policies("[{event: PodFailed}]")}},
			[]attempt{{what: "restart", change: policies("[{event: PodFailed, action: RestartJob}]")}}},
		{of, "a policy is for events or for an exit code", inVCJob,
			"a policy must specify either events or an exit code, and not both",
			[]attempt{
				{what: "neither", change: policies("[{action: RestartJob}]")},
				{what: "both", change: edits{vcWorker + "policies": "yaml:[{event: PodFailed, exitCode: 3, action: RestartJob}]"}},
			},
			[]attempt{{what: "an exit code", change: policies("[{exitCode: 3, action: RestartJob}]")}}},
		{of, "an exit code is not 0", inVCJob, "0 is not a valid error code",
			[]attempt{{what: "0", change: policies("[{exitCode: 0, action: RestartJob}]")}},
			[]attempt{{what: "137", change: policies("[{exitCode: 137, action: RestartJob}]")}}},
		{of, "a policy for any event is the only one", inVCJob, "if there's * here, no other policy should be here",
			[]attempt{{what: "two",
				change: policies(`[{event: "*", action: RestartJob}, {event: PodFailed, action: AbortJob}]`)}},
			[]attempt{{what: "one", change: policies(`[{events: ["*"], action: RestartJob}]`)}}},
	}
}

func vcJobPolicyRules() []rule {
	of := "VCJob"
	policies := func(list string) edits { return edits{"spec>policies": "yaml:" + list} }
	labels := func(key, value string) edits { return edits{"metadata>labels": map[string]any{key: value}} }
	long := strings.Repeat("a", 54) // with -worker-3 that is 63
	return []rule{
		{of, "names of its pods have at most 63 characters", inVCJob,
			"the name of the Job is too long: the names of its pods would exceed 63 characters",
			[]attempt{{what: "64", change: edits{"metadata>name": long + "b"}}},
			[]attempt{{what: "63", change: edits{"metadata>name": long}}}},
		{of, "names of tasks are unique", inVCJob, "duplicated task name",
			[]attempt{
				{what: "two of one name", change: edits{vcWorker + "name": "master"}},
				{what: "one of the name that another has without one",
					change: edits{vcMaster + "name": "", vcWorker + "name": "default0"}},
			},
			[]attempt{{what: "two without a name", change: edits{vcMaster + "name": "", vcWorker + "name": ""}}}},
		{of, "a task with pods has a container", inVCJob,
			"spec.tasks: the template of a task that has replicas must have a container",
			[]attempt{
				{what: "no template", change: edits{vcWorker + "template": nil}},
				{what: "no container", change: edits{vcWorker + "template>spec>containers": []any{}}},
			},
			[]attempt{{what: "no pods", change: edits{vcWorker + "template": nil, vcWorker + "replicas": 0}}}},
		{of, "plugins are supported", inVCJob, "unable to find job plugin: ",
			[]attempt{{what: "horovod", change: edits{"spec>plugins": "yaml:{svc: [], horovod: []}"}}},
			[]attempt{{what: "all",
				change: edits{"spec>plugins": "yaml:{env: [], svc: [], ssh: [], pytorch: [], tensorflow: [], mpi: [], ray: [], hcclrank: []}"}}}},
		{of, "an exit code is in one policy", inVCJob, "duplicate exit code in policies",
			[]attempt{{what: "two", change: policies("[{exitCode: 3, action: RestartJob}, {exitCode: 3, action: AbortJob}]")}},
			[]attempt{{what: "two codes",
				change: policies("[{exitCode: 3, action: RestartJob}, {exitCode: 4, action: AbortJob}]")}}},
		{of, "an event is in one policy", inVCJob, "duplicate event in policies",
			[]attempt{{what: "two",
				change: edits{vcWorker +
					"policies": "yaml:[{event: PodFailed, action: RestartJob}, {events: [PodEvicted, PodFailed], action: AbortJob}]"}}},
			[]attempt{
				{what: "in event and in events",
					change: policies("[{event: PodFailed, events: [PodEvicted, PodFailed], action: AbortJob}]")},
				{what: "twice in the events of one",
					change: policies("[{events: [PodEvicted, PodFailed, PodEvicted], action: TerminateJob}]")},
			}},
		{of, "dependsOn names other tasks", inVCJob, "spec.tasks: dependsOn must name other tasks of the Job",
			[]attempt{
				{what: "one that is not there", change: edits{vcWorker + "dependsOn": "yaml:{name: [ps]}"}},
				{what: "itself", change: edits{vcWorker + "dependsOn": "yaml:{name: [worker]}"}},
			},
			[]attempt{{what: "the master", change: edits{vcWorker + "dependsOn": "yaml:{name: [master]}"}}}},
		{of, "a volume has a path of its own", inVCJob, "mountPath of a volume must not contain ':', nor be that of another",
			[]attempt{
				{what: "a colon", change: edits{"spec>volumes": "yaml:[{mountPath: 'a:b', volumeClaimName: data}]"}},
				{what: "two",
					change: edits{"spec>volumes": "yaml:[{mountPath: /a, volumeClaimName: data}, {mountPath: /a, volumeClaimName: more}]"}},
			},
			[]attempt{{what: "two paths",
				change: edits{"spec>volumes": "yaml:[{mountPath: /a, volumeClaimName: data}, {mountPath: /b, volumeClaimName: data}]"}}}},
		{of, "fields other than sizes and priority are fixed", inVCJob,
			"job updates may change only minAvailable, priorityClassName, ttlSecondsAfterFinished and the replicas and minAvailable of tasks",
			[]attempt{
				{what: "another image", before: edits{}, change: edits{vcWorker + "template>spec>containers>0>image": "j"}},
				{what: "a task less", before: edits{}, change: edits{"spec>tasks": times(1, plainTask)}},
				{what: "another policy", before: edits{}, change: policies("[{event: PodFailed, action: AbortJob}]")},
				{what: "a plugin", before: edits{}, change: edits{"spec>plugins": "yaml:{svc: []}"}},
				{what: "maxRetry", before: edits{}, change: edits{"spec>maxRetry": 7}},
			},
			[]attempt{{what: "its size", before: edits{},
				change: edits{vcWorker + "replicas": 9, vcWorker + "minAvailable": 2, "spec>minAvailable": 3}}}},
		{of, "the label queue-name is the name of a queue", inVCJobLabels,
			"the label kueue.x-k8s.io/queue-name must be the name of a queue",
			[]attempt{{what: "capitals", change: labels("kueue.x-k8s.io/queue-name", "Q")}},
			[]attempt{{what: "a name", change: labels("kueue.x-k8s.io/queue-name", "q")}}},
		{of, "the label priority-class is the name of a class", inVCJobLabels,
			"the label kueue.x-k8s.io/priority-class must be the name of a WorkloadPriorityClass",
			[]attempt{{what: "capitals", change: labels("kueue.x-k8s.io/priority-class", "High")}},
			[]attempt{{what: "a name", change: labels("kueue.x-k8s.io/priority-class", "high")}}},
		{of, "the label max-exec-time-seconds is a number of seconds", inVCJobLabels,
			"the label kueue.x-k8s.io/max-exec-time-seconds must be a number from 1 to 999999999",
			[]attempt{{what: "a word", change: labels("kueue.x-k8s.io/max-exec-time-seconds", "long")}},
			[]attempt{{what: "a minute", change: labels("kueue.x-k8s.io/max-exec-time-seconds", "60")}}},
	}
}

func commandRules() []rule {
	return []rule{
		{"Command", "it names an object", inSchema, "target.name in body should ",
			[]attempt{{what: "a resource", change: edits{"target>name": "nvidia.com/gpu"}},
				{what: "capitals", change: edits{"target>name": "Job"}}, {what: "nothing", change: edits{"target>name": ""}},
				{what: "a control character", change: edits{"target>name": "a\x1b[2J"}}},
			[]attempt{{what: "a name with dots", change: edits{"target>name": "a.b-1"}},
				{what: "no target", change: edits{"target": nil}}}},
		{"Command", "it does not open or close a Queue", inCEL,
			"Commands do not open or close a Queue: set spec.stopPolicy of the ClusterQueue of its name",
			[]attempt{{what: "CloseQueue", change: edits{"action": "CloseQueue"}},
				{what: "OpenQueue", change: edits{"action": "OpenQueue"}}},
			[]attempt{{what: "AbortJob"}, {what: "none", change: edits{"action": nil}},
				{what: "unknown, which an event reports", change: edits{"action": "FlyToTheMoon"}}}},
	}
}

// volcanoAnnotationWarnings are about annotations of Volcano's scheduler that have no effect here.
func volcanoAnnotationWarnings() (out []rule) {
	for kind, place := range map[string]place{"VCJob": inVCJobAnnotations, "Queue": inQueueAnnotations} {
		set := func(keys ...string) edits {
			annotations := map[string]any{}
			for _, key := range keys {
				annotations[key] = "a"
			}
			return edits{"metadata>annotations": annotations}
		}
		former := map[string]string{"VCJob": "sla-waiting-time", "Queue": "volcano.sh/hierarchy"}[kind]
		out = append(out, rule{kind, "Muster reads its annotations of volcano.sh", place,
			"Muster does not read this annotation of a " + kind + ", and it has no effect: ",
			[]attempt{
				{what: "one for Volcano's scheduler", change: set("volcano.sh/preemptable")},
				{what: former, change: set(former, "example.com/note")},
				{what: "later", before: edits{}, change: set(former)},
			},
			[]attempt{
				{what: "another API's", change: set("example.com/preemptable")},
				{what: "one that was there before", before: set(former), change: set(former, "example.com/note")},
			}})
	}
	return out
}

func volcanoQueueRules() []rule {
	of := "Queue"
	return []rule{
		{of, "weight is at least 1", inSchema, "spec.weight in body should be greater than or equal to 1",
			[]attempt{{what: "0", change: edits{"spec>weight": 0}}},
			[]attempt{{what: "1", change: edits{"spec>weight": 1}}}},
		{of, "weight is at most 65535", inSchema, "spec.weight in body should be less than or equal to 65535",
			[]attempt{{what: "65536", change: edits{"spec>weight": 65536}}},
			[]attempt{{what: "65535", change: edits{"spec>weight": 65535}}}},
		{of, "dequeueStrategy is fifo or traverse", inSchema, "spec.dequeueStrategy: Unsupported value",
			[]attempt{{what: "lifo", change: edits{"spec>dequeueStrategy": "lifo"}}},
			[]attempt{{what: "fifo", change: edits{"spec>dequeueStrategy": "fifo"}}}},
		{of, "capability, deserved and guarantee have at most 256 amounts each", inQueueAmounts,
			"capability, deserved and guarantee of a Queue have at most 256 amounts each",
			[]attempt{
				{what: "a capability of 257", change: edits{"spec>capability": manyAmounts(257)}},
				{what: "later", before: edits{}, change: edits{"spec>deserved": manyAmounts(257)}},
			},
			[]attempt{{what: "256 of each", change: edits{"spec>capability": manyAmounts(256), "spec>deserved": manyAmounts(256),
				"spec>guarantee>resource": manyAmounts(256)}}}},
		{of, "its amounts are not negative", inQueueAmounts, "amounts of a Queue must not be negative: cpu",
			[]attempt{{what: "capability", change: amounts("capability", "{cpu: -1}")},
				{what: "deserved", change: amounts("deserved", "{cpu: '-1'}")},
				{what: "guarantee", change: amounts("guarantee", "{resource: {cpu: -1m}}")}},
			[]attempt{{what: "0", change: amounts("capability", "{cpu: 0}")}}},
		{of, "deserved is at most capability", inQueueAmounts, "deserved must be at most the capability: cpu",
			[]attempt{{what: "4 of 3500m", change: amounts("capability", "{cpu: 3500m}", "deserved", "{cpu: 4}")}},
			[]attempt{{what: "4 of 4000m", change: amounts("capability", "{cpu: 4000m}", "deserved", "{cpu: 4, memory: 1Gi}")}}},
		{of, "guarantee is at most capability", inQueueAmounts, "guarantee must be at most the capability: cpu",
			[]attempt{{what: "4 of 3", change: amounts("capability", "{cpu: 3}", "guarantee", "{resource: {cpu: 4}}")}},
			[]attempt{{what: "3 of 3", change: amounts("capability", "{cpu: 3}", "guarantee", "{resource: {cpu: 3}}")}}},
		{of, "names of resources are qualified names", inQueueAmounts,
			"names of resources must be qualified names, such as cpu or nvidia.com/gpu, which these are not: ",
			[]attempt{{what: "capability", change: amounts("capability", "{my gpu: 1}")},
				{what: "deserved", change: amounts("deserved", "{a/b/c: 1}")},
				{what: "guarantee", change: amounts("guarantee", "{resource: {-a: 1}}")}},
			[]attempt{{what: "a device", change: amounts("capability", "{nvidia.com/gpu: 8}")}}},
		{of, "its amounts fit 64 bits", inQueueAmounts, "amounts are at most 9223372036854775807, which these exceed: ",
			[]attempt{{what: "capability", change: amounts("capability", "{cpu: 10E}")},
				{what: "deserved", change: amounts("deserved", "{memory: '1e19'}")},
				{what: "guarantee", change: amounts("guarantee", "{resource: {nvidia.com/gpu: 10E}}")}},
			[]attempt{{what: "the most", change: amounts("capability", "{cpu: 1E, memory: '9223372036854775807'}")}}},
		{of, "deserved is at least guarantee", inQueueAmounts, "guarantee must be at most what is deserved: memory",
			[]attempt{{what: "2Gi of 2047Mi",
				change: amounts("deserved", "{cpu: 4, memory: 2047Mi}", "guarantee", "{resource: {cpu: 4, memory: 2Gi}}")}},
			[]attempt{{what: "the guarantee alone", change: amounts("guarantee", "{resource: {cpu: 4}}")}}},
	}
}

// amounts sets fields of a Queue: amounts("capability", "{cpu: 1}").
func amounts(fields ...string) edits {
	out := edits{}
	for i := 0; i < len(fields); i += 2 {
		out["spec>"+fields[i]] = "yaml:" + fields[i+1]
	}
	return out
}
