# The commands of muster's planner, for scheduling programs in Tcl. Each is a request to the planner over a loopback
# socket: one line there, one line back, both lists whose newlines are escaped.

set ::pbs_errno 0

namespace eval ::muster {
    variable channel {}
    variable body {}
    variable escapes [list "\\" "\\\\" "\n" "\\n" "\r" "\\r"]
    variable meanings [list "\\\\" "\\" "\\n" "\n" "\\r" "\r"]

    proc say {words} {
        variable channel
        variable escapes
        puts $channel [string map $escapes $words]
        flush $channel
    }

    proc hear {} {
        variable channel
        variable meanings
        if {[gets $channel line] < 0} { exit 1 }
        return [string map $meanings $line]
    }

    proc ask {args} {
        say $args
        lassign [hear] kind ::pbs_errno answer
        if {$kind eq "error"} { return -code error $answer }
        return $answer
    }

    proc evaluate {script} {
        set code [catch {uplevel #0 $script} result options]
        catch {flush stdout}
        catch {flush stderr}
        switch -- $code {
            0 - 2 { return [list end done {}] }
            1 { return [list end fault [dict get $options -errorinfo]] }
            default { return [list end fault "break or continue outside of a loop, or an unknown return code: $code"] }
        }
    }

    proc serve {port secret} {
        variable channel
        variable body
        set channel [socket 127.0.0.1 $port]
        fconfigure $channel -encoding utf-8 -translation lf -buffering full
        say [list $secret]
        while 1 {
            lassign [hear] order script
            switch -- $order {
                body { set body $script }
                run { say [evaluate $script] }
                cycle { say [evaluate $body] }
                quit { exit 0 }
            }
        }
    }

    foreach {name formals} {
        openrm {host {port 0}}  closerm handle  downrm handle  configrm {handle file}
        addreq {handle query}  getreq handle  allreq query  flushreq {}  activereq {}  fullresp flag
        pbsstatserv {}  pbsstatjob {}  pbsstatque {}  pbsstatnode {}  pbsselstat {}
        pbsrunjob {id {where {}}}  pbsasyrunjob {id {where {}}}
        pbsrerunjob id  pbsdeljob id  pbsholdjob id  pbsmovejob {id {where {}}}
        pbsqenable queue  pbsqdisable queue  pbsqstart queue  pbsqstop queue
        pbsalterjob {id attributes}
        pbsrescquery resources  pbsrescreserve {id resources}  pbsrescrelease id
        pbsconnect {{server {}}}  pbsdisconnect {}
        strftime {format seconds}
    } {
        set call [list ::muster::ask $name]
        foreach formal $formals { append call " \$[lindex $formal 0]" }
        proc ::$name $formals $call
    }
    proc ::datetime {args} { ::muster::ask datetime {*}$args }
    unset name formals call formal
}
