# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#
# ktap.awk: count the results of one KTAP file. Prints the lines of what failed
# and was skipped, and at last "passed failed skipped". Subtests (four spaces)
# are counted instead of the test that sums them up. A file without a plan, with
# another number of results than planned, or with none at all has failed.
# Variable: name, for the lines.

BEGIN { deepest = 0 }

function problem(text) {
	printf "not ok %s: %s\n", name, text
	failed++
}

# close_level(D): the subtests at depth D are over; their number must be the planned.
function close_level(d,    i) {
	for (i = deepest; i >= d; i--) {
		if (i in plan && plan[i] != seen[i] + 0)
			problem(label[i] "planned " plan[i] " results, saw " seen[i] + 0)
		delete plan[i]
		delete seen[i]
		delete bad[i]
		delete label[i]
	}
	deepest = d - 1
}

{
	sub(/\r$/, "")
	match($0, /^ */)
	depth = int(RLENGTH / 4)
	line = substr($0, RLENGTH + 1)
}

depth > deepest { deepest = depth }

line ~ /^1\.\.[0-9]+/ {
	plan[depth] = substr(line, 4) + 0
	if (plan[depth] == 0 && line ~ /# *[Ss][Kk][Ii][Pp]/) {
		sub(/^.*# *[Ss][Kk][Ii][Pp]:? */, "", line)
		printf "skip %s: %s\n", name, line
		skipped++
		all_skipped = 1
	}
	next
}

line ~ /^# Subtest: / { label[depth] = substr(line, 12) ": "; next }

line ~ /^Bail out!/ { problem("ended early:" substr(line, 10)); next }

line ~ /^(not )?ok [0-9]+/ {
	good = line !~ /^not /
	title = line
	sub(/^(not )?ok [0-9]+ *-? */, "", title)
	seen[depth]++
	parent = (depth + 1) in seen
	worse = parent && ((depth + 1) in bad)
	if (parent)
		close_level(depth + 1)
	if (!good)
		bad[depth] = 1
	if (parent && (good || worse)) {
		# Its subtests have been counted.
	} else if (line ~ /# *[Ss][Kk][Ii][Pp]/) {
		skipped++
		sub(/ *# *[Ss][Kk][Ii][Pp]:? */, ": ", title)
		printf "skip %s: %s%s\n", name, label[depth], title
	} else if (good) {
		passed++
	} else {
		problem(label[depth] title)
	}
}

END {
	if (!(0 in plan))
		problem("no plan line: it did not come to its end")
	else if (plan[0] == 0 && !all_skipped)
		problem("no test ran")
	close_level(0)
	printf "%d %d %d\n", passed, failed, skipped
}
