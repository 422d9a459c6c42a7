package validation

import (
	"slices"
	"strings"
)

const (
	master = "spec>replicaSpecs>0>"
	worker = "spec>replicaSpecs>1>"
)

func genericJobSchemaRules() []rule {
	of := "GenericJob"
	port := func(fields string) edits { return edits{"spec>service": "yaml:{ports: [{" + fields + "}]}"} }
	return []rule{
		{of, "it has a type of replicas", inSchema, "should have at least 1 items",
			[]attempt{{what: "none", change: edits{"spec>replicaSpecs": []any{}}}},
			[]attempt{{what: "two"}}},
		{of, "types are unique", inSchema, "spec.replicaSpecs[1]: Duplicate value",
			[]attempt{{what: "two of one type", change: edits{worker + "type": "master"}}},
			[]attempt{{what: "plain"}}},
		{of, "it has at most 64 types", inSchema, "must have at most 64 items",
			[]attempt{{what: "65", change: edits{"spec>replicaSpecs": times(65, plainReplicas)}}},
			[]attempt{{what: "64", change: edits{"spec>replicaSpecs": times(64, plainReplicas)}}}},
		{of, "a type is a DNS label", inSchema, "should match '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$'",
			[]attempt{
				{what: "capitals", change: edits{worker + "type": "Worker"}},
				{what: "empty", change: edits{worker + "type": ""}},
			},
			[]attempt{{what: "digits first", change: edits{worker + "type": "0-worker"}}}},
		{of, "replicas is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{worker + "replicas": -1}}},
			[]attempt{{what: "0", change: edits{worker + "replicas": 0}}}},
		{of, "a type has at most 5,000 replicas", inSchema, "should be less than or equal to 5000",
			[]attempt{{what: "5,001", change: edits{worker + "replicas": 5001}}},
			[]attempt{{what: "4,999, and a master", change: edits{worker + "replicas": 4999}}}},
		{of, "a type's template has a spec with containers", inSchema, "Required value",
			[]attempt{
				{what: "no spec", change: edits{worker + "template": map[string]any{}}},
				{what: "no containers", change: edits{worker + "template>spec>containers": nil}},
			},
			[]attempt{{what: "plain"}}},
		{of, "the restart policy is Never, OnFailure or Always", inSchema, "Unsupported value",
			[]attempt{{what: "ExitCode", change: edits{worker + "restartPolicy": "yaml:{policy: ExitCode}"}}},
			[]attempt{{what: "Always", change: edits{worker + "restartPolicy": "yaml:{policy: Always, limit: 3}"}}}},
		{of, "the restart limit is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{worker + "restartPolicy": "yaml:{limit: -1}"}}},
			[]attempt{{what: "0", change: edits{worker + "restartPolicy": "yaml:{limit: 0}"}}}},
		{of, "cleanUpPolicy is None, Unfinished or All", inSchema, "Unsupported value",
			[]attempt{{what: "Finished", change: edits{"spec>cleanUpPolicy": "Finished"}}},
			[]attempt{{what: "Unfinished", change: edits{"spec>cleanUpPolicy": "Unfinished"}}}},
		{of, "priority is at least 0", inSchema,
			"spec.scheduler.t9kScheduler.priority: Invalid value: -1: spec.scheduler.t9kScheduler.priority in body should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>scheduler": "yaml:{t9kScheduler: {queue: q, priority: -1}}"}}},
			[]attempt{{what: "0", change: edits{"spec>scheduler": "yaml:{t9kScheduler: {queue: q, priority: 0}}"}}}},
		{of, "priority is at most 100", inSchema,
			"spec.scheduler.t9kScheduler.priority: Invalid value: 101: spec.scheduler.t9kScheduler.priority in body should be less than or equal to 100",
			[]attempt{{what: "101", change: edits{"spec>scheduler": "yaml:{t9kScheduler: {queue: q, priority: 101}}"}}},
			[]attempt{{what: "100", change: edits{"spec>scheduler": "yaml:{t9kScheduler: {queue: q, priority: 100}}"}}}},
		{of, "queue is a DNS subdomain", inSchema, "spec.scheduler.t9kScheduler.queue in body should match",
			[]attempt{{what: "capitals", change: edits{"spec>scheduler": "yaml:{t9kScheduler: {queue: Q}}"}}},
			[]attempt{{what: "none", change: edits{"spec>scheduler": "yaml:{t9kScheduler: {}}"}}}},
		{of, "the number of a port is from 1 to 65535", inSchema, "spec.service.ports[0].port",
			[]attempt{{what: "0", change: port("port: 0")}, {what: "65536", change: port("port: 65536")}},
			[]attempt{{what: "65535", change: port("port: 65535")}}},
		{of, "the name of a port is a DNS label", inSchema, "spec.service.ports[0].name in body should match",
			[]attempt{{what: "capitals", change: port("port: 80, name: HTTP")},
				{what: "a dash at the end", change: port("port: 80, name: http-")}},
			[]attempt{{what: "a word", change: port("port: 80, name: http")}, {what: "none", change: port("port: 80")}}},
		{of, "a port has one Service port of its protocol", inSchema, "spec.service.ports[1]: Duplicate value",
			[]attempt{{what: "80 twice",
				change: edits{"spec>service": "yaml:{ports: [{port: 80, name: a}, {port: 80, name: b}]}"}}},
			[]attempt{{what: "80 of TCP and of UDP",
				change: edits{"spec>service": "yaml:{ports: [{port: 80, name: a}, {port: 80, name: b, protocol: UDP}]}"}}}},
		{of, "a finish rule names a replica", inSchema, "should have at least 1",
			[]attempt{
				{what: "no type", change: edits{"spec>successRules": "yaml:[{}]"}},
				{what: "no index", change: edits{"spec>failureRules": "yaml:[{worker: []}]"}},
			},
			[]attempt{{what: "one", change: edits{"spec>successRules": "yaml:[{worker: [0]}]"}}}},
		{of, "an index in a finish rule is a number", inSchema, "should match '^[0-9]{1,9}$'",
			[]attempt{
				{what: "a word", change: edits{"spec>successRules": "yaml:[{worker: [first]}]"}},
				{what: "minus 1 as text", change: edits{"spec>successRules": `yaml:[{worker: ["-1"]}]`}},
			},
			[]attempt{{what: "as number and as text", change: edits{"spec>successRules": `yaml:[{worker: [0, "1"]}]`}}}},
		{of, "an index in a finish rule is not negative", inSchema, "should be greater than or equal to 0",
			[]attempt{{what: "-1", change: edits{"spec>failureRules": "yaml:[{worker: [-1]}]"}}},
			[]attempt{{what: "0", change: edits{"spec>failureRules": "yaml:[{worker: [0]}]"}}}},
	}
}

const plainReplicas = "{type: t%d, template: {spec: {containers: [{name: c}]}}}"

func genericJobRules() []rule {
	of := "GenericJob"
	resume := func(fields string) edits {
		return edits{"spec>runMode": "yaml:{pause: {" + fields + "}}"}
	}
	labels := func(key, value string) edits { return edits{"metadata>labels": map[string]any{key: value}} }
	long := strings.Repeat("a", 54) // with -worker-3 that is 63
	return []rule{
		{of, "names of its pods have at most 63 characters", inCEL,
			"the name of the GenericJob is too long: the names of its pods would exceed 63 characters",
			[]attempt{{what: "64", change: edits{"metadata>name": long + "b"}}},
			[]attempt{{what: "63", change: edits{"metadata>name": long}}}},
		{of, "with a service its name is a DNS label", inCEL,
			"the name of a GenericJob with a service begins the names of its Services",
			[]attempt{{what: "a digit first",
				change: edits{"metadata>name": "1-job", "spec>service": "yaml:{ports: [{port: 80}]}"}}},
			[]attempt{{what: "a digit first, without a service", change: edits{"metadata>name": "1-job"}}}},
		{of, "it has at most 5,000 replicas", inCEL, "replicas of all types must be at most 5000 together",
			[]attempt{{what: "5,001", change: edits{worker + "replicas": 5000}}},
			[]attempt{{what: "5,000", change: edits{worker + "replicas": 4999}}}},
		{of, "types and replicas are fixed", inCEL, "types and replicas are immutable: create a new GenericJob",
			[]attempt{
				{what: "fewer", before: edits{}, change: edits{worker + "replicas": 3}},
				{what: "another type", before: edits{}, change: edits{worker + "type": "ps"}},
				{what: "one type more", before: edits{},
					change: edits{"spec>replicaSpecs>2": "yaml:{type: ps, template: {spec: {containers: [{name: c}]}}}"}},
			},
			[]attempt{
				{what: "another image, for pods to come", before: edits{},
					change: edits{worker + "template>spec>containers>0>image": "j"}},
				{what: "another clean-up", before: edits{}, change: edits{"spec>cleanUpPolicy": "All"}},
			}},
		{of, "debug mode names types", inCEL, "type must be one of spec.replicaSpecs",
			[]attempt{{what: "ps", change: edits{"spec>runMode": "yaml:{debug: {replicaSpecs: [{type: ps}]}}"}}},
			[]attempt{{what: "worker",
				change: edits{"spec>runMode": "yaml:{debug: {enabled: true, replicaSpecs: [{type: worker, skipInitContainer: true, command: [/usr/bin/sshd]}]}}"}}}},
		{of, "resumeSpecs name types", inCEL, "type must be one of spec.replicaSpecs",
			[]attempt{{what: "ps", change: resume("resumeSpecs: [{type: ps}]")}},
			[]attempt{{what: "worker", change: resume("resumeSpecs: [{type: worker, args: [--resume]}]")}}},
		{of, "resumeSpecs are fixed", inCEL, "resumeSpecs are immutable",
			[]attempt{
				{what: "other args", before: resume("resumeSpecs: [{type: worker, args: [a]}]"),
					change: resume("resumeSpecs: [{type: worker, args: [b]}]")},
				{what: "none any more", before: resume("resumeSpecs: [{type: worker, args: [a]}]"),
					change: resume("enabled: true")},
				{what: "some, late", before: edits{}, change: resume("resumeSpecs: [{type: worker, args: [b]}]")},
			},
			[]attempt{
				{what: "paused", before: resume("resumeSpecs: [{type: worker, args: [a]}]"),
					change: edits{"spec>runMode>pause>enabled": true}},
				{what: "paused without any", before: edits{}, change: resume("enabled: true")},
			}},
		{of, "several ports have names of their own", inCEL, "names of ports must be set and unique where there are several",
			[]attempt{
				{what: "one without", change: edits{"spec>service": "yaml:{ports: [{port: 80, name: a}, {port: 81}]}"}},
				{what: "a name twice", change: edits{"spec>service": "yaml:{ports: [{port: 80, name: a}, {port: 81, name: a}]}"}},
			},
			[]attempt{{what: "two names",
				change: edits{"spec>service": "yaml:{ports: [{port: 80, name: a}, {port: 81, name: b}]}"}}}},
		{of, "success rules name replicas", inFinishRules, "spec.successRules[1].",
			[]attempt{
				{what: "an index too high", change: edits{"spec>successRules": "yaml:[{worker: [3]}, {worker: [0, 4]}]"}},
				{what: "as text", change: edits{"spec>successRules": `yaml:[{worker: [3]}, {worker: ["4"]}]`}},
				{what: "no such type", change: edits{"spec>successRules": "yaml:[{worker: [3]}, {ps: [0]}]"}},
				{what: "changed", before: edits{}, change: edits{"spec>successRules": "yaml:[{worker: [3]}, {ps: [0]}]"}},
			},
			[]attempt{{what: "all",
				change: edits{"spec>successRules": `yaml:[{worker: [0, 1, 2, "3"]}, {master: [0], worker: [0]}]`}}}},
		{of, "failure rules name replicas", inFinishRules, "spec.failureRules[0].",
			[]attempt{
				{what: "an index too high", change: edits{"spec>failureRules": "yaml:[{worker: [4]}]"}},
				{what: "no such type", change: edits{"spec>failureRules": "yaml:[{ps: [0]}]"}},
			},
			[]attempt{{what: "each worker",
				change: edits{"spec>failureRules": "yaml:[{worker: [0]}, {worker: [1]}, {worker: [2]}, {worker: [3]}]"}}}},
		{of, "finish rules list at most 8,192 replicas together", inFinishRules,
			"successRules and failureRules together list at most 8192 replicas",
			[]attempt{{what: "9,216", change: manyIndices(9)}}, []attempt{{what: "8,192", change: manyIndices(8)}}},
		{of, "templates name ports of the service", inFinishRules,
			"a template uses $(service.port[NAME]) with a name that no port of spec.service has: type worker",
			[]attempt{
				{what: "in args", change: usesPort("args: ['--port', '$(service.worker[0].host):$(service.port[ftp])']")},
				{what: "in command", change: usesPort("command: ['$(service.port[http]) $(service.port[])']")},
				{what: "in env", change: usesPort("env: [{name: A, value: '$(service.port[ftp])'}]")},
				{what: "behind an escaped dollar", change: usesPort("args: ['$$$(service.port[ftp])']")},
				{what: "of another name now", before: usesPort("args: ['$(service.port[http])']"),
					change: edits{"spec>service>ports>0>name": "web"}},
			},
			[]attempt{
				{what: "as they are called",
					change: usesPort("args: ['$(service.port[http])', '$(service.port[ssh])-$(rank)', '$(HOME)']")},
				{what: "escaped", change: usesPort("args: ['$$(service.port[ftp])']")},
				{what: "in a long script",
					change: usesPort("args: ['$(service.port[http])" + strings.Repeat("$$a", 400<<10) + "']")},
				{what: "without a service",
					change: edits{worker + "template>spec>containers>0": "yaml:{name: c, image: i, args: ['$(service.port[ftp])']}"}},
			}},
		{of, "templates name replicas", inFinishRules,
			"a template uses $(service.TYPE[RANK].host) of a replica that there is not (ranks count from 0): type worker",
			[]attempt{
				{what: "a rank that counts from 1",
					change: usesPort("args: ['$(service.worker[3].host):1 $(service.worker[4].host):$(service.port[http])']")},
				{what: "no such type", change: usesPort("env: [{name: A, value: '$(service.ps[0].host)'}]")},
				{what: "no rank", change: usesPort("command: ['$(service.worker[].host)']")},
				{what: "a rank that is no number", change: usesPort("command: ['$(service.worker[rank].host)']")},
				{what: "in an init container", change: edits{
					"spec>service":                          "yaml:{ports: [{name: http, port: 2222}]}",
					worker + "template>spec>initContainers": "yaml:[{name: d, image: i, args: ['$(service.worker[9].host)']}]",
				}},
			},
			[]attempt{
				{what: "as they are called",
					change: usesPort("args: ['a[9].host) $(service.worker[0].host):$(service.port[http]),$(service.worker[3].host)']")},
				{what: "escaped", change: usesPort("args: ['$$(service.worker[9].host)']")},
				{what: "commands of a shell",
					change: usesPort("args: ['x=$(service.sh start); echo $(service.d/x host)', '$(service.']")},
				{what: "in a long script",
					change: usesPort("args: ['$(service.worker[0].host)" + strings.Repeat(")a", 400<<10) + "']")},
				{what: "in a type that may grow", change: edits{
					"spec>service": "yaml:{ports: [{name: http, port: 2222}]}",
					worker + "template": "yaml:{metadata: {annotations: {muster.dev/min-replicas: '1', muster.dev/max-replicas: '20'}}, " +
						"spec: {containers: [{name: c, image: i, args: ['$(service.worker[9].host)']}]}}",
				}},
				{what: "without a service",
					change: edits{
						worker + "template>spec>containers>0": "yaml:{name: c, image: i, args: ['$(service.worker[9].host)']}"}},
			}},
		{of, "templates count replicas of its types", inFinishRules,
			"a template uses $(replicas[TYPE]) of a type that spec.replicaSpecs has not: type worker",
			[]attempt{
				{what: "no such type",
					change: edits{
						worker +
							"template>spec>containers>0": "yaml:{name: c, image: i, args: ['-n', '$(replicas[worker]) $(replicas[wroker])']}"}},
				{what: "in env", change: usesPort("env: [{name: A, value: '$(replicas[])'}]")},
			},
			[]attempt{
				{what: "its own", change: usesPort("args: ['$(replicas[worker])', 'replicas[ps]']")},
				{what: "escaped", change: usesPort("args: ['$$(replicas[ps])']")},
			}},
		{of, "the label queue-name is the name of a queue", inGenericLabels,
			"the label kueue.x-k8s.io/queue-name must be the name of a queue",
			[]attempt{{what: "capitals", change: labels("kueue.x-k8s.io/queue-name", "Q")}},
			[]attempt{{what: "small letters", change: labels("kueue.x-k8s.io/queue-name", "q")}}},
		{of, "the label priority-class is the name of a class", inGenericLabels,
			"the label kueue.x-k8s.io/priority-class must be the name of a WorkloadPriorityClass",
			[]attempt{{what: "capitals", change: labels("kueue.x-k8s.io/priority-class", "P")}},
			[]attempt{{what: "small letters", change: labels("kueue.x-k8s.io/priority-class", "p")}}},
		{of, "the label max-exec-time-seconds is a number of seconds", inGenericLabels,
			"the label kueue.x-k8s.io/max-exec-time-seconds must be a number from 1 to 999999999",
			[]attempt{{what: "0", change: labels("kueue.x-k8s.io/max-exec-time-seconds", "0")}},
			[]attempt{{what: "1", change: labels("kueue.x-k8s.io/max-exec-time-seconds", "1")}}},
	}
}

// usesPort returns a job whose Services have the ports http and ssh, and whose workers have a container with these
// fields.
func usesPort(fields string) edits {
	return edits{
		"spec>service":                        "yaml:{ports: [{name: http, port: 2222}, {name: ssh, port: 22}]}",
		worker + "template>spec>containers>0": "yaml:{name: c, image: i, " + fields + "}",
	}
}

// manyIndices are so many failure rules of 1,024 replicas.
func manyIndices(rules int) edits {
	return edits{worker + "replicas": 4999,
		"spec>failureRules": slices.Repeat([]any{map[string]any{"worker": times(1024, "%d")}}, rules)}
}
